"""What other services tell: EC2 says that an instance changed its state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

if TYPE_CHECKING:
    from aws_cdk import aws_lambda as lambda_


class Ec2StateChanges(Construct):
    """Carries EC2 state changes of this account to `target`, from the default bus: AWS sends them nowhere else."""

    def __init__(self, scope: Construct, id_: str, *, target: lambda_.Function) -> None:
        super().__init__(scope, id_)
        events.Rule(
            self,
            "Rule",
            description="Wakes the run whose instance changed its state",
            event_pattern=events.EventPattern(
                source=["aws.ec2"], detail_type=["EC2 Instance State-change Notification"]
            ),
            targets=[targets.LambdaFunction(target)],
        )
