"""What an administrator has to hear of. Alarms are made without actions: who is told is the administrator's choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

if TYPE_CHECKING:
    from infra.constructs.workers import FailedWork
    from infra.constructs.workflow import Workflow

PERIOD = Duration.minutes(5)


class Alarms(Construct):
    """One for executions that fail, one for work that was given up. Silence is good news."""

    def __init__(
        self, scope: Construct, id_: str, *, deployment_id: str, workflow: Workflow, failed: FailedWork
    ) -> None:
        super().__init__(scope, id_)
        self._one_is_enough(
            "ExecutionsFailed",
            f"{deployment_id}-executions-failed",
            "A run's workflow failed: a GPU release is pending, or the workflow was interrupted. "
            "See the failed executions in the Step Functions console.",
            workflow.failures(PERIOD),
        )
        self._one_is_enough(
            "FailedWork",
            f"{deployment_id}-failed-work",
            "Work was given up after its retries. Its description lies in the queue of failed work.",
            failed.queue.metric_approximate_number_of_messages_visible(period=PERIOD, statistic="Maximum"),
        )

    def _one_is_enough(self, id_: str, name: str, description: str, metric: cloudwatch.Metric) -> None:
        cloudwatch.Alarm(
            self,
            id_,
            alarm_name=name,
            alarm_description=description,
            metric=metric,
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=1,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
