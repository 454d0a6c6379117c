"""Accounts and Regions beside the deployment's own, as their owners see them, and the rules that forward their events."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tensorant_local.aws import events
from tensorant_local.aws.images import SeededAccount, seed_account
from tensorant_local.aws.server import EmbeddedAws

CUSTOMER = "444455556666"
"""The account that the deployment under test hears besides its own."""


@dataclass(frozen=True)
class Elsewhere:
    """An account and a Region; `client` speaks for its administrator."""

    aws: EmbeddedAws
    account_id: str
    region: str = "us-east-1"

    def client(self, service: str, **options: Any) -> Any:
        role = f"arn:aws:iam::{self.account_id}:role/administrator"
        session = self.aws.client("sts").assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
        return self.aws.client(
            service,
            region_name=self.region,
            aws_access_key_id=session["AccessKeyId"],
            aws_secret_access_key=session["SecretAccessKey"],
            aws_session_token=session["SessionToken"],
            **options,
        )

    def seeded(self) -> SeededAccount:
        return seed_account(self, bucket=f"bucket-of-{self.account_id}")

    def forward(self, bus_arn: str) -> None:
        """What the connector does: EC2's and AWS Health's events go to the deployment."""
        rules = self.client("events")
        rules.put_rule(Name="to-tensorant", EventPattern=json.dumps({"source": ["aws.ec2", "aws.health"]}))
        role = f"arn:aws:iam::{self.account_id}:role/tensorant-forwarder"
        rules.put_targets(Rule="to-tensorant", Targets=[{"Id": "bus", "Arn": bus_arn, "RoleArn": role}])

    def schedule_retirement(self, instance_id: str) -> None:
        """AWS Health tells the account that an instance will be stopped."""
        code = "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"
        detail = {
            "eventArn": f"arn:aws:health:{self.region}::event/EC2/{code}/{code}_1",
            "service": "EC2",
            "eventTypeCode": code,
            "eventTypeCategory": "scheduledChange",
            "startTime": "Fri, 01 Aug 2036 09:00:00 GMT",
            "statusCode": "upcoming",
            "eventRegion": self.region,
            "affectedEntities": [{"entityValue": instance_id}],
        }
        events.emit(
            self.account_id,
            self.region,
            source="aws.health",
            detail_type="AWS Health Event",
            detail=detail,
            resources=[instance_id],
        )
