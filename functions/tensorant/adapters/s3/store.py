"""`ports.ObjectStore` on one bucket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from botocore.httpsession import URLLib3Session

from tensorant.adapters.s3 import listing
from tensorant.adapters.s3.errors import Trouble, absent, taken, translated
from tensorant.adapters.s3.uploads import Target, upload
from tensorant.domain.errors import Configuration, Conflict, Storage
from tensorant.domain.storages import S3_ABILITIES, StorageAbilities
from tensorant.ports import ObjectFacts, StorageCheck

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CHUNK = 1 << 20


@dataclass(frozen=True)
class S3Store:
    """`abilities` decide how it is written to; `session` is what the check opens presigned URLs with."""

    client: S3Client
    bucket: str
    prefix: str
    abilities: StorageAbilities = S3_ABILITIES
    session: URLLib3Session | None = None

    def check(self) -> StorageCheck:
        from tensorant.adapters.s3.checks import check  # noqa: PLC0415 - needed by the check's function only

        return check(self)

    # -- reading -----------------------------------------------------------------------------------------

    def head(self, key: str) -> ObjectFacts | None:
        try:
            answer = self.client.head_object(Bucket=self.bucket, Key=self.prefix + key)
        except Trouble as error:
            if absent(error):
                return None
            raise translated(error, f"look up {key}") from error
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
            if answer["ETag"] != etag:  # a store may not know the condition
                raise Storage("object_changed", f"{key} is not the object that it was.", mend="Look again.")
            yield from answer["Body"].iter_chunks(CHUNK)
        except Trouble as error:
            raise translated(error, f"read {key}") from error

    def get(self, key: str, *, limit: int) -> bytes | None:
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=self.prefix + key)
            content = answer["Body"].read(limit + 1)
        except Trouble as error:
            if absent(error):
                return None
            raise translated(error, f"read {key}") from error
        if len(content) > limit:
            raise Storage("object_too_large", f"{key} is larger than {limit:,} bytes.")
        return content

    def keys(self, under: str) -> Iterator[str]:
        try:
            for key in listing.keys(self.client, self.bucket, self.prefix + under):
                yield key.removeprefix(self.prefix)
        except Trouble as error:
            raise translated(error, f"list what is under {under}") from error

    # -- writing -----------------------------------------------------------------------------------------

    def put(self, key: str, content: bytes | Iterable[bytes], *, replace: bool = True) -> None:
        """A store without conditional writes is asked first; two writers at once may both find nothing."""
        conditional = not replace and self.abilities.conditional_writes
        if not replace and not conditional and self.head(key) is not None:
            raise _exists(key)
        target = Target(client=self.client, bucket=self.bucket, key=self.prefix + key, new=conditional)
        try:
            upload(target, content, self.abilities)
        except Trouble as error:
            if conditional and taken(error):
                raise _exists(key) from error
            raise translated(error, f"write {key}") from error

    def delete(self, key: str) -> None:
        try:
            self.client.delete_object(Bucket=self.bucket, Key=self.prefix + key)
        except Trouble as error:
            raise translated(error, "delete an object") from error

    # -- rights ------------------------------------------------------------------------------------------

    def presign_get(self, key: str, *, lasting: timedelta) -> str:
        self._require_presigned()
        return self.presigned("get_object", key, lasting)

    def presign_put(self, key: str, *, lasting: timedelta) -> str:
        self._require_presigned()
        return self.presigned("put_object", key, lasting)

    def presigned(self, operation: str, key: str, lasting: timedelta) -> str:
        """A URL, whether or not the store honours it: signing needs no store."""
        return self.client.generate_presigned_url(
            operation,
            Params={"Bucket": self.bucket, "Key": self.prefix + key},
            ExpiresIn=int(lasting.total_seconds()),
        )

    def _require_presigned(self) -> None:
        if not self.abilities.presigned:
            raise Configuration(
                "storage_without_presigning",
                "The storage takes no presigned URLs.",
                mend="Use storage that takes them; the connection's check tells.",
            )


def _exists(key: str) -> Conflict:
    return Conflict("object_exists", f"There is an object {key} already.", mend="Write under another name.")
