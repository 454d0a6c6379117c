"""Events in and out: what other services tell, what the clock tells, and what Tensorant tells others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.constructs.rights import Right

if TYPE_CHECKING:
    from infra.constructs.customers import CustomersBus
    from infra.constructs.table import Table
    from infra.constructs.workers import FailedWork

RETRIES = 20
MAXIMUM_AGE = Duration.hours(1)
"""How long EventBridge tries to hand an event to its function; the sweep comes after that."""

SWEEP_PERIOD = Duration.minutes(5)

BATCH = 100
BATCH_RETRIES = 10
"""Of one batch of facts, with a growing pause; meanwhile later facts wait."""

FACTS = {"eventName": ["INSERT"], "dynamodb": {"NewImage": {"kind": {"S": ["Fact"]}}}}
"""The table's changes that others are told of. Source: docs/events.md."""


class Ec2News(Construct):
    """Carries state changes of EC2 instances, and what AWS Health says is scheduled for them, to `target`.

    AWS puts both on the default bus of the instances' account and Region, and nowhere else; the customers'
    bus has what other accounts and Regions forward.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        target: lambda_.Function,
        failed: FailedWork,
        forwarded: CustomersBus | None = None,
    ) -> None:
        super().__init__(scope, id_)
        bus = forwarded.bus if forwarded else None
        account = forwarded.accounts if forwarded else None
        events.Rule(
            self,
            "StateChanges",
            description="Wakes the run whose instance changed its state",
            event_bus=bus,
            event_pattern=events.EventPattern(
                account=account, source=["aws.ec2"], detail_type=["EC2 Instance State-change Notification"]
            ),
            targets=[_reaching(target, failed)],
        )
        events.Rule(
            self,
            "ScheduledChanges",
            description="Warns the run whose instance is to be retired, stopped or disturbed",
            event_bus=bus,
            event_pattern=events.EventPattern(
                account=account,
                source=["aws.health"],
                detail_type=["AWS Health Event"],
                detail={"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]},
            ),
            targets=[_reaching(target, failed)],
        )


class BadEnds(Construct):
    """Carries executions of one state machine that failed, timed out or were stopped to `target`."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        state_machine_arn: str,
        target: lambda_.Function,
        failed: FailedWork,
    ) -> None:
        super().__init__(scope, id_)
        events.Rule(
            self,
            "Rule",
            description="Keeps the machine of a run whose workflow ended badly from being forgotten",
            event_pattern=events.EventPattern(
                source=["aws.states"],
                detail_type=["Step Functions Execution Status Change"],
                detail={
                    "stateMachineArn": [state_machine_arn],
                    "status": ["FAILED", "ABORTED", "TIMED_OUT"],
                },
            ),
            targets=[_reaching(target, failed)],
        )


class SweepSchedule(Construct):
    """Calls `target` every few minutes. A call that cannot be made is not repeated: the next one comes."""

    def __init__(self, scope: Construct, id_: str, *, target: lambda_.Function, failed: FailedWork) -> None:
        super().__init__(scope, id_)
        events.Rule(
            self,
            "Rule",
            description="Finds and does what workflows and events left undone",
            schedule=events.Schedule.rate(SWEEP_PERIOD),
            targets=[_reaching(target, failed, retries=0)],
        )


class EventBus(Construct):
    """The deployment's own bus, where administrators add rules and targets (docs/events.md)."""

    def __init__(self, scope: Construct, id_: str, *, deployment_id: str) -> None:
        super().__init__(scope, id_)
        self._bus = events.EventBus(self, "Bus", event_bus_name=f"{deployment_id}-events")

    @property
    def name(self) -> str:
        return self._bus.event_bus_name

    def may_publish(self) -> Right:
        return Right(("events:PutEvents",), self._bus.event_bus_arn)


class FactStream(Construct):
    """Carries each new fact of the table to `target`, at least once; what it cannot take goes to `failed`."""

    def __init__(
        self, scope: Construct, id_: str, *, table: Table, target: lambda_.Function, failed: FailedWork
    ) -> None:
        super().__init__(scope, id_)
        failed.receive_from(target)
        lambda_.CfnEventSourceMapping(
            self,
            "Mapping",
            function_name=target.function_name,
            event_source_arn=table.stream_arn,
            starting_position="TRIM_HORIZON",
            batch_size=BATCH,
            bisect_batch_on_function_error=True,
            maximum_retry_attempts=BATCH_RETRIES,
            filter_criteria=lambda_.CfnEventSourceMapping.FilterCriteriaProperty(
                filters=[lambda_.CfnEventSourceMapping.FilterProperty(pattern=json.dumps(FACTS))]
            ),
            destination_config=lambda_.CfnEventSourceMapping.DestinationConfigProperty(
                on_failure=lambda_.CfnEventSourceMapping.OnFailureProperty(destination=failed.arn)
            ),
        )


def _reaching(
    function: lambda_.Function, failed: FailedWork, *, retries: int = RETRIES
) -> targets.LambdaFunction:
    """A rule's target; what cannot be handed over goes to `failed`."""
    return targets.LambdaFunction(
        function, dead_letter_queue=failed.queue, retry_attempts=retries, max_event_age=MAXIMUM_AGE
    )
