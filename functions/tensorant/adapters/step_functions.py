"""`ports.Workflow` on AWS Step Functions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from tensorant.domain.errors import ProviderFault
from tensorant.domain.runs import Run

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

NO_LONGER_WAITING = {"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"}


@dataclass(frozen=True)
class StepFunctions:
    client: SFNClient
    state_machine_arn: str = ""

    def start(self, run: Run) -> None:
        request = {"operation": run.operation, "run_id": run.id, "number": run.executions}
        try:
            self.client.start_execution(
                stateMachineArn=self.state_machine_arn, name=run.execution_name, input=json.dumps(request)
            )
        except self.client.exceptions.ExecutionAlreadyExists:
            return
        except (ClientError, BotoCoreError) as error:
            raise _fault("start the execution") from error

    def runs(self, run: Run) -> bool | None:
        execution_arn = (
            f"{self.state_machine_arn.replace(':stateMachine:', ':execution:')}:{run.execution_name}"
        )
        try:
            status = self.client.describe_execution(executionArn=execution_arn)["status"]
        except self.client.exceptions.ExecutionDoesNotExist:
            return None
        except (ClientError, BotoCoreError) as error:
            raise _fault("describe the execution") from error
        return status == "RUNNING"

    def wake(self, task_token: str) -> None:
        try:
            self.client.send_task_success(taskToken=task_token, output="{}")
        except (ClientError, BotoCoreError) as error:
            _ignore_if_over(error, "wake the execution")

    def beat(self, task_token: str) -> None:
        try:
            self.client.send_task_heartbeat(taskToken=task_token)
        except (ClientError, BotoCoreError) as error:
            _ignore_if_over(error, "extend the wait")


def _ignore_if_over(error: ClientError | BotoCoreError, doing: str) -> None:
    if isinstance(error, ClientError) and error.response["Error"]["Code"] in NO_LONGER_WAITING:
        return
    raise _fault(doing) from error


def _fault(doing: str) -> ProviderFault:
    return ProviderFault("workflow_failed", f"Step Functions could not {doing}.", mend="Try again.")
