"""The HTTP side: what RunPod's S3 API serves, what it refuses, and how it fails."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from tensorant_local.loopback import LoopbackHandler, LoopbackServer
from tensorant_local.runpod_storage.signing import Key, fault
from tensorant_local.runpod_storage.volume import Volume, etag

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

MB = 1_000_000
PAGE = 1000
"""Keys on one page of a listing (ListObjectsV2, MaxKeys)."""

STATUSES = {
    "AccessDenied": HTTPStatus.FORBIDDEN,
    "AuthorizationHeaderMalformed": HTTPStatus.BAD_REQUEST,
    "EntityTooLarge": HTTPStatus.BAD_REQUEST,
    "InvalidAccessKeyId": HTTPStatus.FORBIDDEN,
    "InvalidPart": HTTPStatus.BAD_REQUEST,
    "InvalidRange": HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
    "NoSuchBucket": HTTPStatus.NOT_FOUND,
    "NoSuchKey": HTTPStatus.NOT_FOUND,
    "NoSuchUpload": HTTPStatus.NOT_FOUND,
    "NotImplemented": HTTPStatus.NOT_IMPLEMENTED,
    "SignatureDoesNotMatch": HTTPStatus.FORBIDDEN,
    "XAmzContentSHA256Mismatch": HTTPStatus.BAD_REQUEST,
}
LISTING = {"list-type", "prefix", "delimiter", "max-keys", "continuation-token", "encoding-type"}
PARTS = {"uploads", "uploadId", "partNumber"}


@dataclass(frozen=True)
class Asked:
    method: str
    target: str
    """Path and query as they were sent."""
    headers: Mapping[str, str]
    body: bytes

    @property
    def bucket_and_key(self) -> tuple[str, str]:
        bucket, _, key = urlsplit(self.target).path.lstrip("/").partition("/")
        return unquote(bucket), unquote(key)

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))


@dataclass(frozen=True)
class Answer:
    status: HTTPStatus = HTTPStatus.OK
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class Refused(Exception):
    """Answered with an error; the argument is its code."""


class RunPodStorage:
    """One volume on 127.0.0.1, from `with` to the end of its block.

    No presigned URLs, no DeleteObjects, no conditional writes (the header is overlooked), nothing but the
    documented operations. Every `bad_gateway_every`-th request is answered with 502: by turns before it was done
    and after. `put_limit` and `part_limit` are bytes. A listing across folders repeats its continuation token.
    """

    def __init__(
        self,
        *,
        datacenter: str = "EU-RO-1",
        volume_id: str = "a1b2c3d4e5",
        bad_gateway_every: int = 0,
        put_limit: int = 500 * MB - 1,
        part_limit: int = 500 * MB,
    ) -> None:
        self.datacenter = datacenter
        self.volume_id = volume_id
        self.key = Key("user_2fJq0simulated", "rps_SIMULATED0SIMULATED0SIMULATED", datacenter)
        self.volume = Volume()
        self.asked: list[str] = []
        """Method and path of every request, oldest first."""
        self.bad_gateways = 0
        self._every = bad_gateway_every
        self._limits = {"put": put_limit, "part": part_limit}
        self._numbers = itertools.count(1)
        self._server = LoopbackServer(_handler(self))

    def __enter__(self) -> Self:
        self._server.start("runpod-storage")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()

    @property
    def url(self) -> str:
        return f"http://{self._server.address}"

    @property
    def secret(self) -> dict[str, str]:
        """The credentials, as a connection keeps them."""
        return {
            "access_key_id": self.key.access_key_id,
            "secret_access_key": self.key.secret_access_key,
        }

    # -- answering ---------------------------------------------------------------------------------------

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(f"{asked.method} {urlsplit(asked.target).path}")
        number = next(self._numbers)
        if not self._every or number % self._every:
            return self._done(asked)
        self.bad_gateways += 1
        if self.bad_gateways % 2 == 0:
            self._done(asked)
        return Answer(HTTPStatus.BAD_GATEWAY, b"<html>502 Bad Gateway</html>", {"Content-Type": "text/html"})

    def _done(self, asked: Asked) -> Answer:
        try:
            self._admit(asked)
            return self._served(asked)
        except Refused as refused:
            code = str(refused.args[0])
            return Answer(STATUSES[code], _xml("Error", f"<Code>{code}</Code><Message>{code}</Message>"))

    def _admit(self, asked: Asked) -> None:
        if "X-Amz-Signature" in asked.query:
            raise Refused("NotImplemented")
        if code := fault(self.key, asked.method, asked.target, asked.headers, asked.body):
            raise Refused(code)

    def _served(self, asked: Asked) -> Answer:
        bucket, key = asked.bucket_and_key
        if bucket != self.volume_id:
            raise Refused("NoSuchBucket")
        subresources = set(asked.query) - {"x-id"}
        if not key:
            if asked.method == "HEAD":
                return Answer()
            if asked.method == "GET" and "list-type" in subresources and subresources <= LISTING:
                return self._listed(asked.query)
        elif subresources & PARTS:
            return self._multipart(asked, key)
        elif not subresources:
            return self._object(asked, key)
        raise Refused("NotImplemented")

    def _object(self, asked: Asked, key: str) -> Answer:
        match asked.method:
            case "PUT":
                self._require_within("put", asked.body)
                self.volume.files[key] = asked.body
                return Answer(headers={"ETag": etag(asked.body)})
            case "DELETE":
                self.volume.files.pop(key, None)
                return Answer(HTTPStatus.NO_CONTENT)
            case "GET" | "HEAD":
                return self._file(asked, key)
        raise Refused("NotImplemented")

    def _file(self, asked: Asked, key: str) -> Answer:
        if key not in self.volume.files:
            raise Refused("NoSuchKey")
        content = self.volume.files[key]
        headers = {"ETag": etag(content), "Content-Type": "application/octet-stream"}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", asked.headers.get("range", ""))
        if wanted is None:
            return Answer(body=content, headers=headers)
        first, last = int(wanted[1]), min(int(wanted[2]), len(content) - 1)
        if first > last:
            raise Refused("InvalidRange")
        headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        return Answer(HTTPStatus.PARTIAL_CONTENT, content[first : last + 1], headers)

    def _listed(self, query: Mapping[str, str]) -> Answer:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        most = min(int(query.get("max-keys", PAGE)), PAGE)
        start = int(query.get("continuation-token", 0))
        entries = self.volume.entries(prefix, delimiter)
        rest = start + most
        truncated = rest < len(entries)
        next_token = rest if delimiter else most  # the open issue: across folders it stays the first page's
        shown = "".join(self._entry(name, folder=folder) for name, folder in entries[start:rest])
        more = f"<NextContinuationToken>{next_token}</NextContinuationToken>" if truncated else ""
        return Answer(
            body=_xml("ListBucketResult", f"<IsTruncated>{str(truncated).lower()}</IsTruncated>{more}{shown}")
        )

    def _entry(self, name: str, *, folder: bool) -> str:
        if folder:
            return f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
        content = self.volume.files[name]
        return (
            f"<Contents><Key>{escape(name)}</Key><Size>{len(content)}</Size>"
            f"<ETag>{escape(etag(content))}</ETag></Contents>"
        )

    def _multipart(self, asked: Asked, key: str) -> Answer:
        query = asked.query
        if asked.method == "POST" and "uploads" in query:
            begun = f"<Key>{escape(key)}</Key><UploadId>{self.volume.begin(key)}</UploadId>"
            return Answer(body=_xml("InitiateMultipartUploadResult", begun))
        upload = self.volume.uploads.get(query.get("uploadId", ""))
        if upload is None or upload.key != key:
            raise Refused("NoSuchUpload")
        match asked.method:
            case "PUT":
                self._require_within("part", asked.body)
                upload.parts[int(query["partNumber"])] = asked.body
                return Answer(headers={"ETag": etag(asked.body)})
            case "POST":
                return self._completed(asked, query["uploadId"])
            case "DELETE":
                self.volume.uploads.pop(query["uploadId"], None)
                return Answer(HTTPStatus.NO_CONTENT)
        raise Refused("NotImplemented")

    def _completed(self, asked: Asked, upload_id: str) -> Answer:
        numbers = [int(each) for each in re.findall(rb"<PartNumber>(\d+)</PartNumber>", asked.body)]
        content = self.volume.complete(upload_id, numbers)
        if content is None:
            raise Refused("InvalidPart")
        return Answer(body=_xml("CompleteMultipartUploadResult", f"<ETag>{escape(etag(content))}</ETag>"))

    def _require_within(self, limit: str, body: bytes) -> None:
        if len(body) > self._limits[limit]:
            raise Refused("EntityTooLarge")


def _xml(root: str, inner: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?><{root}>{inner}</{root}>'.encode()


def _handler(storage: RunPodStorage) -> type[LoopbackHandler]:
    class Handler(LoopbackHandler):
        def serve(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = storage.answer(Asked(self.command, self.path, headers, self.body()))
            self.reply(answer.status, answer.body, answer.headers)

        def handle_expect_100(self) -> bool:
            """Goes out at once: a client waits for it before it sends its body."""
            go_on = super().handle_expect_100()
            self.wfile.flush()
            return go_on

    return Handler
