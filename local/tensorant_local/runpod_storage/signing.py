"""Whether a request is signed by the volume's key: Signature Version 4 in the header, nothing else."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

if TYPE_CHECKING:
    from collections.abc import Mapping

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})"
)


@dataclass(frozen=True)
class Key:
    access_key_id: str
    secret_access_key: str = field(repr=False)
    region: str
    """The datacenter; requests signed for another region are refused."""


def fault(key: Key, method: str, path: str, headers: Mapping[str, str], body: bytes) -> str | None:
    """The error's code; None if the request is signed well. `path` is as it was sent, query included."""
    found = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
    if found is None:
        return "AccessDenied"
    access_key_id, region, signed, signature = found.groups()
    if access_key_id != key.access_key_id:
        return "InvalidAccessKeyId"
    if region != key.region:
        return "AuthorizationHeaderMalformed"
    stated = headers.get("x-amz-content-sha256", "")
    if stated.startswith("STREAMING-"):
        return "NotImplemented"
    if stated not in {"UNSIGNED-PAYLOAD", hashlib.sha256(body).hexdigest()}:
        return "XAmzContentSHA256Mismatch"
    known = {name: headers[name] for name in signed.split(";") if name in headers}
    return (
        None
        if hmac.compare_digest(signature, _signature(key, method, path, known))
        else "SignatureDoesNotMatch"
    )


def _signature(key: Key, method: str, path: str, headers: Mapping[str, str]) -> str:
    """What botocore, as the client, would have signed."""
    request = AWSRequest(method=method, url=f"http://{headers.get('host', '')}{path}", headers=dict(headers))
    request.context["timestamp"] = headers.get("x-amz-date", "")
    auth = S3SigV4Auth(Credentials(key.access_key_id, key.secret_access_key), "s3", key.region)
    to_sign = auth.string_to_sign(request, auth.canonical_request(request))
    return str(auth.signature(to_sign, request))
