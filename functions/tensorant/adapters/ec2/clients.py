"""The clients of one connection to AWS, each made when first needed: making one takes its time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tensorant.adapters.ec2.errors import translated
from tensorant.adapters.ec2.pricing import PRICING_REGION, Prices
from tensorant.adapters.ec2.roles import PATIENT, AssumedRole

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_sts import STSClient

ASK_ONCE = Config(retries={"mode": "standard", "total_max_attempts": 1}, connect_timeout=5, read_timeout=30)
"""RunInstances: a capacity error is a 5xx that botocore would silently retry."""

HURRIED = Config(retries={"mode": "standard", "total_max_attempts": 1}, connect_timeout=2, read_timeout=4)
"""What a person waits for and can do without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whose credentials they are."""

    account_id: str
    arn: str

    @property
    def is_root(self) -> bool:
        """The account's root user, who may do everything (ARN `arn:aws:iam::<account>:root`)."""
        return self.arn.endswith(":root")


class Clients:
    """AWS in one region, with the credentials of one account; `role` is the one that they come from, if any."""

    def __init__(self, session: boto3.Session, region: str, role: AssumedRole | None = None) -> None:
        self.region = region
        self.role = role
        self._session = session

    @cached_property
    def ec2(self) -> EC2Client:
        return self._session.client("ec2", config=PATIENT)

    @cached_property
    def ec2_once(self) -> EC2Client:
        """For a request that is never repeated behind our back."""
        return self._session.client("ec2", config=ASK_ONCE)

    @cached_property
    def prices(self) -> Prices:
        return Prices(
            self._session.client("pricing", region_name=PRICING_REGION, config=PATIENT), self.region
        )

    @cached_property
    def quotas(self) -> Any:
        """Service Quotas."""
        return self._session.client("service-quotas", config=HURRIED)

    @cached_property
    def iam(self) -> Any:
        return self._session.client("iam", config=PATIENT)

    @cached_property
    def _sts(self) -> STSClient:
        return self._session.client("sts", config=PATIENT)

    def identity(self) -> Identity:
        """Whose the credentials are, as AWS says at this moment; no policy is needed for that."""
        try:
            seen = self._sts.get_caller_identity()
        except (ClientError, BotoCoreError) as error:
            raise translated(error, doing="read the account's id") from error
        return Identity(account_id=seen["Account"], arn=seen.get("Arn", ""))

    def account(self) -> str:
        """The account's id, read anew."""
        return self.identity().account_id
