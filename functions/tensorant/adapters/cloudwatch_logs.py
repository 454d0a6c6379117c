"""`ports.RunLogs` on CloudWatch Logs: one group, one stream for each attempt and source of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from tensorant.domain.errors import ProviderFault
from tensorant.ports import LogLine, LogPage

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient

MAX_LINE_BYTES = 8_000


@dataclass(frozen=True)
class CloudWatchRunLogs:
    client: CloudWatchLogsClient
    group: str

    def append(self, run_id: str, attempt: int, source: str, lines: Sequence[str], *, at: datetime) -> None:
        if not lines:
            return
        stream = _stream(run_id, attempt)
        millis = int(at.timestamp() * 1000)
        events: Any = [
            {"timestamp": millis, "message": json.dumps({"source": source, "text": line[:MAX_LINE_BYTES]})}
            for line in lines
        ]
        try:
            self._put(stream, events)
        except (ClientError, BotoCoreError) as error:
            raise _fault() from error

    def _put(self, stream: str, events: Any) -> None:
        try:
            self.client.put_log_events(logGroupName=self.group, logStreamName=stream, logEvents=events)
        except self.client.exceptions.ResourceNotFoundException:
            self._create(stream)
            self.client.put_log_events(logGroupName=self.group, logStreamName=stream, logEvents=events)

    def _create(self, stream: str) -> None:
        try:
            self.client.create_log_stream(logGroupName=self.group, logStreamName=stream)
        except self.client.exceptions.ResourceAlreadyExistsException:
            return

    def read(self, run_id: str, attempt: int, *, after: str | None, limit: int) -> LogPage:
        request: Any = {
            "logGroupName": self.group,
            "logStreamName": _stream(run_id, attempt),
            "startFromHead": True,
            "limit": limit,
        }
        if after:
            request["nextToken"] = after
        try:
            answer = self.client.get_log_events(**request)
        except self.client.exceptions.ResourceNotFoundException:
            return LogPage(lines=(), next=after)
        except (ClientError, BotoCoreError) as error:
            raise _fault() from error
        lines = [_line(event) for event in answer["events"]]
        return LogPage(lines=lines, next=answer["nextForwardToken"])


def _stream(run_id: str, attempt: int) -> str:
    return f"{run_id}/{attempt}"


def _line(event: Any) -> LogLine:
    body = json.loads(event["message"])
    at = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
    return LogLine(at=at, source=body["source"], text=body["text"])


def _fault() -> ProviderFault:
    return ProviderFault("logs_failed", "CloudWatch Logs did not answer.", mend="Try again.")
