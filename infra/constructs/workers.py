"""Work that nobody waits for with an open connection: tried again when it fails, kept when that does not help."""

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
    """The queue of work that was given up, for an administrator to read."""

    def __init__(self, scope: Construct, id_: str) -> None:
        super().__init__(scope, id_)
        self.queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
        )
        accept(self.queue, "AwsSolutions-SQS3", because="This is the queue of failures itself.")

    @property
    def arn(self) -> str:
        return self.queue.queue_arn

    def receive_from(self, function: lambda_.Function) -> None:
        """Let Lambda send here, with the function's role, what the function failed at."""
        function.add_to_role_policy(
            iam.PolicyStatement(actions=["sqs:SendMessage"], resources=[self.queue.queue_arn])
        )

    def keep(
        self, worker: lambda_.Function, *, retries: int = RETRIES, maximum_age: Duration = MAXIMUM_AGE
    ) -> None:
        """Send here what `worker` failed at, after its retries or its time."""
        self.receive_from(worker)
        lambda_.CfnEventInvokeConfig(
            self,
            f"{worker.node.id}Invocations",
            function_name=worker.function_name,
            qualifier="$LATEST",
            maximum_retry_attempts=retries,
            maximum_event_age_in_seconds=int(maximum_age.to_seconds()),
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=self.queue.queue_arn)
            ),
        )
