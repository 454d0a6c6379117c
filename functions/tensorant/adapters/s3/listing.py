"""Listing a bucket under a prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorant.domain.errors import Storage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client


def keys(client: S3Client, bucket: str, prefix: str) -> Iterator[str]:
    """Every key under a prefix, one folder after the other.

    Folder by folder, since a listing across folders of RunPod's volumes repeats its continuation token and
    never ends (RunPod's S3-compatible API, an open issue); a token that comes back raises `Storage`.
    """
    waiting = [prefix]
    while waiting:
        folders: list[str] = []
        for page in _pages(client, bucket, waiting.pop()):
            yield from (each["Key"] for each in page.get("Contents", ()))
            folders += [each["Prefix"] for each in page.get("CommonPrefixes", ())]
        waiting += reversed(folders)


def _pages(client: S3Client, bucket: str, prefix: str) -> Iterator[Any]:
    seen: set[str] = set()
    page = client.list_objects_v2(Bucket=bucket, Prefix=prefix, Delimiter="/")
    yield page
    while page.get("IsTruncated"):
        token = page.get("NextContinuationToken", "")
        if not token or token in seen:
            raise Storage(
                "listing_in_circles",
                f"The storage lists {bucket}/{prefix} in circles: a continuation token came back.",
                mend="Keep fewer files in one folder, under 1,000.",
            )
        seen.add(token)
        page = client.list_objects_v2(Bucket=bucket, Prefix=prefix, Delimiter="/", ContinuationToken=token)
        yield page
