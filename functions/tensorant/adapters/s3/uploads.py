"""Writing an object of any size with the memory of two parts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from tensorant.adapters.s3.errors import Trouble, absent, code_of
from tensorant.domain.errors import Storage
from tensorant.domain.storages import StorageAbilities

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

PART_BYTES = 16 * 2**20
"""All parts but the last are this long, as some stores want them; 10,000 of them (S3's limit) are 156 GiB."""
MAX_PARTS = 10_000

WHOLE_BYTES = 256 * 2**20
"""The longest object where there are no parts: it is held in memory, whole."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """An object to write. `new`: with the condition that there is none yet, which the store looks at."""

    client: S3Client
    bucket: str
    key: str
    new: bool

    @property
    def _condition(self) -> dict[str, str]:
        return {"IfNoneMatch": "*"} if self.new else {}

    def put(self, content: bytes) -> None:
        self.client.put_object(Bucket=self.bucket, Key=self.key, Body=content, **self._condition)  # type: ignore[arg-type]

    def put_parts(self, parts: Iterable[bytes]) -> None:
        """What was begun and can't be ended is given up, so that nothing is left that costs money."""
        begun = self.client.create_multipart_upload(Bucket=self.bucket, Key=self.key)["UploadId"]
        done: list[CompletedPartTypeDef] = []
        size = 0
        try:
            for number, part in enumerate(parts, start=1):
                _require_countable(number)
                done.append({"PartNumber": number, "ETag": self._put_part(begun, number, part)})
                size += len(part)
            self._complete(begun, done, size)
        except BaseException:
            self.abort(begun)
            raise

    def _put_part(self, upload_id: str, number: int, part: bytes) -> str:
        answer = self.client.upload_part(
            Bucket=self.bucket, Key=self.key, UploadId=upload_id, PartNumber=number, Body=part
        )
        return answer["ETag"]

    def _complete(self, upload_id: str, parts: list[CompletedPartTypeDef], size: int) -> None:
        """An answer that got lost looks, when asked again, as if there were no such upload."""
        try:
            self.client.complete_multipart_upload(
                Bucket=self.bucket,
                Key=self.key,
                UploadId=upload_id,
                MultipartUpload={"Parts": parts},
                **self._condition,  # type: ignore[arg-type]
            )
        except ClientError as error:
            if code_of(error) != "NoSuchUpload" or self._size() != size:
                raise

    def _size(self) -> int | None:
        try:
            return self.client.head_object(Bucket=self.bucket, Key=self.key)["ContentLength"]
        except ClientError as error:
            if absent(error):
                return None
            raise

    def abort(self, upload_id: str) -> None:
        """Give an upload up, if the store still hears us."""
        with contextlib.suppress(*Trouble):
            self.client.abort_multipart_upload(Bucket=self.bucket, Key=self.key, UploadId=upload_id)


def upload(target: Target, content: bytes | Iterable[bytes], abilities: StorageAbilities) -> None:
    """One request for what is small, parts for what is not. Raises `Storage` for what is too large."""
    chunks = [content] if isinstance(content, bytes) else content
    most = min(PART_BYTES, abilities.max_part_bytes) if abilities.multipart else WHOLE_BYTES
    most = min(most, abilities.max_put_bytes)
    parts = blocks(chunks, most)
    first = next(parts)
    second = next(parts, None)
    if second is None:
        target.put(first)
    elif abilities.multipart:
        target.put_parts(chain((first, second), parts))
    else:
        raise too_large(most)


def blocks(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The same bytes in blocks of `size`, the last perhaps shorter; at least one, perhaps empty."""
    held = bytearray()
    first = True
    for chunk in chunks:
        held += chunk
        while len(held) > size:
            yield bytes(held[:size])
            del held[:size]
            first = False
    if held or first:
        yield bytes(held)


def _require_countable(number: int) -> None:
    if number > MAX_PARTS:
        raise too_large(MAX_PARTS * PART_BYTES)


def too_large(most: int) -> Storage:
    return Storage(
        "object_too_large_to_store",
        f"The storage takes objects of up to {most:,} bytes.",
        mend="Use storage that takes multipart uploads, or store less at once.",
    )
