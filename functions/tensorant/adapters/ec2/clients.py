"""The clients of one connection to AWS, each made when first needed: making one takes its time."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tensorant.adapters.ec2.errors import translated
from tensorant.adapters.ec2.pricing import PRICING_REGION, Prices

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_sts import STSClient

ASK_ONCE = Config(retries={"mode": "standard", "total_max_attempts": 1}, connect_timeout=5, read_timeout=30)
"""RunInstances: a capacity error is a 5xx that botocore would silently retry."""

PATIENT = Config(retries={"mode": "standard", "total_max_attempts": 3}, connect_timeout=5, read_timeout=15)


class Clients:
    """AWS in one region, with the credentials of one account."""

    def __init__(self, session: boto3.Session, region: str) -> None:
        self.region = region
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
    def _sts(self) -> STSClient:
        return self._session.client("sts", config=PATIENT)

    def account(self) -> str:
        """Whose the credentials are, as AWS says at this moment."""
        try:
            return self._sts.get_caller_identity()["Account"]
        except (ClientError, BotoCoreError) as error:
            raise translated(error, doing="read the account's id") from error
