"""Clients of S3 and of stores that speak its API: how they sign, address, retry and where they may connect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_s3 import S3Client

ATTEMPTS = 4
READ_SECONDS = 60


@dataclass(frozen=True, kw_only=True)
class Place:
    """A bucket, and how to speak to it. `endpoint_url` None: where AWS has S3 in the region."""

    region: str
    bucket: str
    prefix: str
    endpoint_url: str | None
    addressing_style: Literal["virtual", "path"]
    attempts: int = ATTEMPTS
    read_seconds: float = READ_SECONDS

    @property
    def key_prefix(self) -> str:
        folder = self.prefix.strip("/")
        return f"{folder}/" if folder else ""

    def client(self, secret: Mapping[str, str]) -> S3Client:
        return boto3.client(
            "s3",
            aws_access_key_id=secret["access_key_id"],
            aws_secret_access_key=secret["secret_access_key"],
            aws_session_token=secret.get("session_token"),
            region_name=self.region,
            endpoint_url=self.endpoint_url,
            config=config(self.addressing_style, attempts=self.attempts, read_seconds=self.read_seconds),
        )


def config(
    addressing_style: Literal["virtual", "path"],
    *,
    attempts: int = ATTEMPTS,
    read_seconds: float = READ_SECONDS,
) -> Config:
    """SigV4 always; checksums only where required, since other vendors' stores refuse the rest."""
    return Config(
        signature_version="s3v4",
        s3={"addressing_style": addressing_style},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        retries={"mode": "standard", "total_max_attempts": attempts},
        connect_timeout=5,
        read_timeout=read_seconds,
    )
