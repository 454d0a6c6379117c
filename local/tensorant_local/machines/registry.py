"""What stands for every HTTPS host outside: a server on loopback that knows each name a machine calls it by.

It answers 401, as a registry of container images does at `/v2/`. Its certificates come from an authority of
its own, which machines trust as their image's; one is made for each name when it is first asked for.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tensorant_local.loopback import LoopbackHandler, LoopbackServer

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.x509 import Certificate

_LASTS = timedelta(days=365)
_SLOWEST_HANDSHAKE_SECONDS = 10
_NAMELESS: Final = "registry.invalid"
"""The certificate of a caller who names nobody."""


class Registry(LoopbackServer):
    """Made in `folder`, which keeps the certificates; serves from `start` to `stop`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._authority = self._certificate("Simulated authority")
        self.trusted = folder / "authority.pem"
        self.trusted.write_bytes(_pem(self._authority))
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._first = self._context(_NAMELESS)
        self._first.sni_callback = self._named
        super().__init__(_Handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Shakes hands in the connection's own thread: a caller who hangs up holds up nobody."""
        request.settimeout(_SLOWEST_HANDSHAKE_SECONDS)
        try:
            encrypted = self._first.wrap_socket(request, server_side=True)
        except OSError:  # it hung up, or does not trust the authority
            return
        with encrypted:
            super().finish_request(encrypted, client_address)

    def _named(self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        if name:
            connection.context = self._context(name)

    def _context(self, name: str) -> ssl.SSLContext:
        if name not in self._contexts:
            chain = self._folder / f"{name}.pem"
            chain.write_bytes(_key_pem(self._key) + _pem(self._certificate(name, issuer=self._authority)))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(chain)
            self._contexts[name] = context
        return self._contexts[name]

    def _certificate(self, name: str, issuer: Certificate | None = None) -> Certificate:
        """For `name`; without an issuer, of an authority."""
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer.subject if issuer else subject)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _LASTS)
            .not_valid_after(now + _LASTS)
            .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        )
        if issuer:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        return builder.sign(self._key, hashes.SHA256())


class _Handler(LoopbackHandler):
    def serve(self) -> None:
        self.reply(401, headers={"Docker-Distribution-Api-Version": "registry/2.0"})
        self.close_connection = True


def _pem(certificate: Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
