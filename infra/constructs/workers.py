"""Work that is accepted with 202 and done later: tried again when it fails, and kept when that does not help."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs.exceptions import accept

RETRIES = 2
MAXIMUM_AGE = Duration.hours(1)
"""People wait for this work; what is older than that would answer nobody."""


class FailedWork(Construct):
    """The queue of asynchronous invocations that were given up, for an administrator to read."""

    def __init__(self, scope: Construct, id_: str) -> None:
        super().__init__(scope, id_)
        self._queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
        )
        accept(self._queue, "AwsSolutions-SQS3", because="This is the queue of failures itself.")

    def keep(self, worker: lambda_.Function) -> None:
        """Send here what `worker` failed at, after its retries or its time."""
        worker.add_to_role_policy(
            iam.PolicyStatement(actions=["sqs:SendMessage"], resources=[self._queue.queue_arn])
        )
        lambda_.CfnEventInvokeConfig(
            self,
            f"{worker.node.id}Invocations",
            function_name=worker.function_name,
            qualifier="$LATEST",
            maximum_retry_attempts=RETRIES,
            maximum_event_age_in_seconds=int(MAXIMUM_AGE.to_seconds()),
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=self._queue.queue_arn)
            ),
        )
