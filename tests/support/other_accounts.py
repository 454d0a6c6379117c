"""Somebody else's account in the embedded AWS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensorant_local.aws.server import EmbeddedAws


@dataclass(frozen=True)
class OtherAccount:
    """An account with clients of its own, as its administrator has them."""

    aws: EmbeddedAws
    account_id: str

    @property
    def region(self) -> str:
        return self.aws.region

    @property
    def keys(self) -> dict[str, str]:
        """As boto3 takes them."""
        administrator = f"arn:aws:iam::{self.account_id}:role/administrator"
        session = self.aws.client("sts").assume_role(RoleArn=administrator, RoleSessionName="test")
        return {
            "aws_access_key_id": session["Credentials"]["AccessKeyId"],
            "aws_secret_access_key": session["Credentials"]["SecretAccessKey"],
            "aws_session_token": session["Credentials"]["SessionToken"],
        }

    def client(self, service: str, **options: Any) -> Any:
        return self.aws.client(service, **{**self.keys, **options})
