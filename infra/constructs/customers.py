"""The customers' bus: where what EC2 tells connected accounts arrives, apart from the deployment's own events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from constructs import Construct

if TYPE_CHECKING:
    from infra.deployment import Deployment

SOURCES = ["aws.ec2", "aws.health"]
"""Nobody but AWS can put events of these sources (PutEvents refuses `aws.`)."""

STATEMENT = "CustomersEc2Events"


class CustomersBus(Construct):
    """A bus that only the listed accounts may put events on, and only those of EC2 and AWS Health.

    Rules of the deployment's own account in other Regions forward here as well: their role is enough.
    """

    def __init__(self, scope: Construct, id_: str, *, deployment: Deployment) -> None:
        super().__init__(scope, id_)
        self.bus = events.EventBus(self, "Bus", event_bus_name=f"{deployment.id}-customers")
        self.accounts = [Aws.ACCOUNT_ID, *deployment.customer_accounts]
        """Whose events are heard."""
        if deployment.customer_accounts:
            events.CfnEventBusPolicy(
                self,
                "Policy",
                event_bus_name=self.bus.event_bus_name,
                statement_id=STATEMENT,
                statement=self._customers_events(deployment).to_statement_json(),
            )

    @property
    def arn(self) -> str:
        return self.bus.event_bus_arn

    def _customers_events(self, deployment: Deployment) -> iam.PolicyStatement:
        """A request may carry several events: all must be of these sources.

        Source: EventBridge user guide, example policy for a custom bus in a different account.
        """
        return iam.PolicyStatement(
            sid=STATEMENT,
            principals=[iam.AccountPrincipal(account) for account in deployment.customer_accounts],
            actions=["events:PutEvents"],
            resources=[self.arn],
            conditions={"ForAllValues:StringEquals": {"events:source": SOURCES}},
        )
