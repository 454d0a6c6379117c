"""`ports.Staging` on the deployment's own bucket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from tensorant.adapters.s3.errors import Trouble, absent, translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CHUNK = 1 << 20


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
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=key)
        except Trouble as error:
            if absent(error):
                return None
            raise translated(error, "read the staged file") from error
        return answer["Body"].iter_chunks(CHUNK)
