"""`ports.Workers` by asynchronous Lambda invocation, which retries and has a dead-letter queue."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from tensorant.domain.errors import ProviderFault

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


@dataclass(frozen=True)
class LambdaWorkers:
    """A function's ARN is empty where the caller has no right to it."""

    client: LambdaClient
    connection_check_arn: str = ""
    dataset_worker_arn: str = ""

    def check_connection(self, organization_id: str, connection_id: str) -> None:
        self._start(
            self.connection_check_arn, {"organization_id": organization_id, "connection_id": connection_id}
        )

    def validate_dataset(self, organization_id: str, version_id: str) -> None:
        self._start(self.dataset_worker_arn, {"organization_id": organization_id, "version_id": version_id})

    def _start(self, function: str, payload: dict[str, str]) -> None:
        try:
            self.client.invoke(
                FunctionName=function, InvocationType="Event", Payload=json.dumps(payload).encode()
            )
        except (ClientError, BotoCoreError) as error:
            raise ProviderFault(
                "worker_failed", "The work could not be started.", mend="Try again."
            ) from error
