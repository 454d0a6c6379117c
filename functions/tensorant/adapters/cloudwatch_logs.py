"""`ports.RunLogs` on CloudWatch Logs: one group, one stream for each attempt and source of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from tensorant.domain.errors import ProviderFault
from tensorant.ports import LogLine, LogPage

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient

MAX_LINE_CHARACTERS = 8_000
MAX_BATCH_BYTES = 1_048_576
EVENT_OVERHEAD_BYTES = 26
"""PutLogEvents takes 1 MiB, counting each event's UTF-8 text and 26 bytes (API reference)."""


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
            {"timestamp": millis, "message": _message(source, line[:MAX_LINE_CHARACTERS])} for line in lines
        ]
        try:
            for batch in _batches(events):
                self._put(stream, batch)
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


def _message(source: str, text: str) -> str:
    return json.dumps({"source": source, "text": text}, ensure_ascii=False)


def _batches(events: Any) -> Iterator[Any]:
    """The events in their order, in as few requests as their size allows."""
    batch: list[Any] = []
    size = 0
    for event in events:
        added = len(event["message"].encode(errors="replace")) + EVENT_OVERHEAD_BYTES
        if batch and size + added > MAX_BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(event)
        size += added
    yield batch


def _line(event: Any) -> LogLine:
    body = json.loads(event["message"])
    at = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
    return LogLine(at=at, source=body["source"], text=body["text"])


def _fault() -> ProviderFault:
    return ProviderFault("logs_failed", "CloudWatch Logs did not answer.", mend="Try again.")
