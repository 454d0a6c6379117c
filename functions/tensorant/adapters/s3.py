"""`ports.ObjectStore` on S3, with a connection's credentials, and the deployment's own staging bucket."""

from __future__ import annotations

import io
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tensorant.domain.connections import CheckItem, CheckVerdict, Connection, S3Settings
from tensorant.domain.errors import Configuration, Storage
from tensorant.ports import ObjectFacts, ObjectStore, Secrets

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer
    from mypy_boto3_s3 import S3Client

CHUNK = 1 << 20
PROBE = ".tensorant-check"


def config(addressing_style: Literal["virtual", "path"]) -> Config:
    """SigV4 always; checksums only where required, since other vendors' stores refuse the rest."""
    return Config(
        signature_version="s3v4",
        s3={"addressing_style": addressing_style},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        retries={"mode": "standard", "total_max_attempts": 4},
        connect_timeout=5,
        read_timeout=60,
    )


@dataclass(frozen=True)
class S3Stores:
    """Opens a storage connection with its own credentials."""

    secrets: Secrets

    def open(self, connection: Connection) -> ObjectStore:
        settings = connection.settings
        if not isinstance(settings, S3Settings):
            raise Configuration(
                "not_storage", "The connection is not to storage.", mend="Choose a storage connection."
            )
        secret = self.secrets.read(connection.id)
        client = boto3.client(
            "s3",
            aws_access_key_id=secret["access_key_id"],
            aws_secret_access_key=secret["secret_access_key"],
            aws_session_token=secret.get("session_token"),
            region_name=settings.region,
            endpoint_url=settings.endpoint_url,
            config=config(settings.addressing_style),
        )
        prefix = settings.prefix.strip("/")
        return S3Store(client, settings.bucket, f"{prefix}/" if prefix else "")


@dataclass(frozen=True)
class S3Store:
    client: S3Client
    bucket: str
    prefix: str

    def check(self) -> Sequence[CheckItem]:
        """Write, read back and delete one small object under the prefix."""
        where = f"s3://{self.bucket}/{self.prefix}"
        try:
            self._probe()
        except Storage as error:
            return (
                CheckItem(name="storage", verdict=CheckVerdict.FAILED, seen=error.message, mend=error.mend),
            )
        seen = f"wrote, read and deleted an object under {where}"
        return (CheckItem(name="storage", verdict=CheckVerdict.OK, seen=seen),)

    def _probe(self) -> None:
        key = f"{PROBE}-{secrets.token_hex(8)}"  # two checks at once must not meet
        self.put(key, b"ok")
        if self.get(key, limit=CHUNK) != b"ok":
            raise Storage("not_read_back", f"What was written to {self.bucket} did not come back.")
        try:
            self.client.delete_object(Bucket=self.bucket, Key=self.prefix + key)
        except (ClientError, BotoCoreError) as error:
            raise _translated(error, "delete an object") from error

    def head(self, key: str) -> ObjectFacts | None:
        try:
            answer = self.client.head_object(Bucket=self.bucket, Key=self.prefix + key)
        except (ClientError, BotoCoreError) as error:
            if _absent(error):
                return None
            raise _translated(error, f"look up {key}") from error
        return ObjectFacts(size=answer["ContentLength"], etag=answer["ETag"])

    def read(self, key: str, offset: int, length: int, *, etag: str) -> bytes:
        return b"".join(self.stream(key, offset, length, etag=etag))

    def stream(self, key: str, offset: int, length: int, *, etag: str) -> Iterator[bytes]:
        if length <= 0:
            return
        try:
            answer = self.client.get_object(
                Bucket=self.bucket,
                Key=self.prefix + key,
                Range=f"bytes={offset}-{offset + length - 1}",
                IfMatch=etag,
            )
            yield from answer["Body"].iter_chunks(CHUNK)
        except (ClientError, BotoCoreError) as error:
            raise _translated(error, f"read {key}") from error

    def get(self, key: str, *, limit: int) -> bytes | None:
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=self.prefix + key)
            content = answer["Body"].read(limit + 1)
        except (ClientError, BotoCoreError) as error:
            if _absent(error):
                return None
            raise _translated(error, f"read {key}") from error
        if len(content) > limit:
            raise Storage("object_too_large", f"{key} is larger than {limit:,} bytes.")
        return content

    def put(self, key: str, content: bytes | Iterable[bytes]) -> None:
        chunks = [content] if isinstance(content, bytes) else content
        try:
            self.client.upload_fileobj(io.BufferedReader(_Chunks(chunks)), self.bucket, self.prefix + key)
        except (ClientError, BotoCoreError) as error:
            raise _translated(error, f"write {key}") from error

    def presign_get(self, key: str, *, lasting: timedelta) -> str:
        return self._presigned("get_object", key, lasting)

    def presign_put(self, key: str, *, lasting: timedelta) -> str:
        return self._presigned("put_object", key, lasting)

    def _presigned(self, operation: str, key: str, lasting: timedelta) -> str:
        return self.client.generate_presigned_url(
            operation,
            Params={"Bucket": self.bucket, "Key": self.prefix + key},
            ExpiresIn=int(lasting.total_seconds()),
        )


class _Chunks(io.RawIOBase):
    """Chunks as a readable file, so that an upload of any size needs a part's memory."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = chunk
        taken = self._rest[: len(view)]
        view[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)


@dataclass(frozen=True)
class StagingBucket:
    """`ports.Staging` with the function's own role."""

    client: S3Client
    bucket: str

    def upload_url(self, key: str, *, lasting: timedelta) -> str:
        return self.client.generate_presigned_url(
            "put_object", Params={"Bucket": self.bucket, "Key": key}, ExpiresIn=int(lasting.total_seconds())
        )

    def stream(self, key: str) -> Iterator[bytes] | None:
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=key)
        except (ClientError, BotoCoreError) as error:
            if _absent(error):
                return None
            raise _translated(error, "read the staged file") from error
        return answer["Body"].iter_chunks(CHUNK)


def _absent(error: ClientError | BotoCoreError) -> bool:
    return isinstance(error, ClientError) and error.response["Error"]["Code"] in {
        "404",
        "NoSuchKey",
        "NotFound",
    }


def _translated(error: ClientError | BotoCoreError, doing: str) -> Storage:
    code = error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
    return Storage(
        "storage_failed",
        f"The storage could not {doing}: {code}.",
        mend="Check the storage connection: bucket, prefix, region and the rights of its credentials.",
    )
