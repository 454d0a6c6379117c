"""Which addresses a custom S3 endpoint may have: by its form when it is entered, by its number when connecting.

The control plane connects to what a customer names. Without these rules it would reach, for them, what only
it can reach: its own network, and the addresses where a cloud tells credentials.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

from tensorant.domain.errors import Invalid

CODE = "endpoint_not_allowed"

INNER_NAMES = ("localhost", "localdomain", "local", "internal", "intranet", "lan", "home.arpa")
"""Ends of names that lead nowhere outside (RFC 6761, 6762, 8375, and custom)."""

METADATA_V6 = IPv6Address("fd00:ec2::254")
"""EC2's instance metadata over IPv6; over IPv4 it is link-local."""

NAT64 = IPv6Network("64:ff9b::/96")
"""Its last four bytes are an IPv4 address (RFC 6052)."""


def endpoint(text: str, *, private_allowed: bool = False) -> str:
    """An endpoint as it is kept: a public HTTPS address without credentials, query or fragment.

    Raises `Invalid`, which never repeats what was entered: it may hold a password. `private_allowed` is the
    deployment's choice; then HTTP and inner names are taken, too.
    """
    parts = _split(text.strip())
    if parts.scheme != "https" and not (private_allowed and parts.scheme == "http"):
        raise _refused("it does not begin with https://", "Enter the store's HTTPS address.")
    if "@" in parts.netloc:
        raise _refused("it holds a name or a password", "Leave them out: keys have fields of their own.")
    if parts.query or parts.fragment:
        raise _refused("it has a query or a fragment", "End it after the host, or after the path.")
    host, port = _host_and_port(parts)
    if reason := _inner(host, private_allowed=private_allowed):
        raise _refused(
            reason,
            "Use an address that the internet reaches, or ask an administrator to allow private storage for this "
            "deployment.",
        )
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def forbidden(address: str, *, private_allowed: bool = False) -> str | None:
    """Why nobody may connect to an IP address for a customer; None if it may be.

    Link-local addresses, where clouds tell credentials, are never allowed.
    """
    ip = _plain(ip_address(address.partition("%")[0]))
    if ip.is_link_local or ip == METADATA_V6:
        return "it is an address where clouds keep instance metadata"
    if private_allowed:
        return None
    if ip.is_loopback or ip.is_unspecified:
        return "it is an address of the machine itself"
    if not ip.is_global or ip.is_multicast or ip.is_reserved:
        return "it is not a public address"
    return None


def _split(text: str) -> SplitResult:
    """Refuses first what `urlsplit` would silently drop or read otherwise than other readers do."""
    if not re.fullmatch(r"[!-\[\]-~]{1,512}", text):
        raise _refused("it holds spaces, backslashes or characters outside ASCII, or is too long", FORM)
    try:
        return urlsplit(text)
    except ValueError:
        raise _refused("it is not an address", FORM) from None


def _host_and_port(parts: SplitResult) -> tuple[str, int | None]:
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _refused("its port is not one", FORM) from None
    if not host or port == 0:
        raise _refused("it names no host", FORM)
    return host.rstrip("."), port


def _inner(host: str, *, private_allowed: bool) -> str | None:
    """What is wrong with a host by its form; names that a resolver reads as numbers count as no names."""
    try:
        return forbidden(host, private_allowed=private_allowed)
    except ValueError:
        pass
    labels = host.split(".")
    if not all(re.fullmatch(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", label) for label in labels):
        return "its host is not a name"
    if re.fullmatch(r"\d+|0x[0-9a-f]*", labels[-1]):
        return "its host is neither a name nor a whole IP address"
    if private_allowed:
        return None
    if len(labels) == 1 or host.endswith(tuple(f".{name}" for name in INNER_NAMES)):
        return "its host is a name of an inner network"
    return None


def _plain(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address inside an IPv6 one, where a translator would go there."""
    if isinstance(ip, IPv4Address):
        return ip
    if ip in NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or ip


FORM = "Enter it as https://HOST or https://HOST:PORT, as your storage's documentation shows it."


def _refused(why: str, mend: str) -> Invalid:
    return Invalid(CODE, f"The endpoint is not taken: {why}.", mend=mend, field="endpoint_url")
