"""`ports.Staging` on the deployment's own bucket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from tensorant.adapters.s3.errors import Trouble, absent, translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import GetObjectOutputTypeDef

CHUNK = 1 << 20
RESUMES = 5
"""How often a broken connection is followed by another, from the byte where it broke. The SDK retries requests,
but not a body that ends too soon."""
READING = "read the staged file"


@dataclass(frozen=True)
class StagingBucket:
    """With the function's own role."""

    client: S3Client
    bucket: str

    def upload_url(self, key: str, *, lasting: timedelta) -> str:
        return self.client.generate_presigned_url(
            "put_object", Params={"Bucket": self.bucket, "Key": key}, ExpiresIn=int(lasting.total_seconds())
        )

    def stream(self, key: str) -> Iterator[bytes] | None:
        """One object as it was when the stream began, however often the connection breaks: see `RESUMES`."""
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=key)
        except Trouble as error:
            if absent(error):
                return None
            raise translated(error, READING) from error
        return self._resumed(key, answer)

    def _resumed(self, key: str, answer: GetObjectOutputTypeDef) -> Iterator[bytes]:
        size, etag, done, resumes = answer["ContentLength"], answer["ETag"], 0, 0
        while done < size:
            try:
                if resumes:
                    answer = self.client.get_object(
                        Bucket=self.bucket, Key=key, Range=f"bytes={done}-", IfMatch=etag
                    )
                for chunk in answer["Body"].iter_chunks(CHUNK):
                    done += len(chunk)
                    yield chunk
            except Trouble as error:
                if isinstance(error, ClientError) or resumes >= RESUMES:
                    raise translated(error, READING) from error
            resumes += 1
