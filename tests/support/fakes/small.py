"""The small ports: workflow, workers, logs, secrets, clock and identifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tensorant.domain.connections import AwsSettings
from tensorant.domain.errors import Credentials
from tensorant.domain.runs import Run
from tensorant.ports import LogLine, LogPage

NOON = datetime(2026, 8, 1, 12, 0, tzinfo=UTC)


@dataclass
class FixedClock:
    """Stands still until a test moves it."""

    at: datetime = NOON

    def now(self) -> datetime:
        return self.at

    def forward(self, **period: float) -> datetime:
        """`forward(minutes=5)`; returns the new time."""
        self.at += timedelta(**period)
        return self.at


@dataclass
class SequentialIds:
    """`run-101`, `run-102`, …: apart from the ids that worlds are built with."""

    made: int = 100

    def new(self, kind: str) -> str:
        self.made += 1
        return f"{kind}-{self.made}"

    def external_id(self) -> str:
        """`00000000000000000000000000000101`, …"""
        self.made += 1
        return f"{self.made:032}"


@dataclass
class FakeWorkflow:
    """`started` has every request to start, `executions` each name once; `trouble` is raised by the next start.

    An execution runs until it is in `ended`.
    """

    started: list[str] = field(default_factory=list)
    ended: set[str] = field(default_factory=set)
    woken: list[str] = field(default_factory=list)
    beaten: list[str] = field(default_factory=list)
    trouble: list[Exception] = field(default_factory=list)

    @property
    def executions(self) -> set[str]:
        return set(self.started)

    def start(self, run: Run) -> None:
        if self.trouble:
            raise self.trouble.pop(0)
        self.started.append(run.execution_name)

    def runs(self, run: Run) -> bool | None:
        if run.execution_name not in self.started:
            return None
        return run.execution_name not in self.ended

    def wake(self, task_token: str) -> None:
        self.woken.append(task_token)

    def beat(self, task_token: str) -> None:
        self.beaten.append(task_token)


@dataclass
class FakeWorkers:
    """Takes notes instead of working."""

    checks: list[tuple[str, str]] = field(default_factory=list)
    validations: list[tuple[str, str]] = field(default_factory=list)

    def check_connection(self, organization_id: str, connection_id: str) -> None:
        self.checks.append((organization_id, connection_id))

    def validate_dataset(self, organization_id: str, version_id: str) -> None:
        self.validations.append((organization_id, version_id))


@dataclass
class MemoryRunLogs:
    lines: dict[tuple[str, int], list[LogLine]] = field(default_factory=dict)

    def append(self, run_id: str, attempt: int, source: str, lines: Sequence[str], *, at: datetime) -> None:
        if lines:
            new = [LogLine(at=at, source=source, text=text) for text in lines]
            self.lines.setdefault((run_id, attempt), []).extend(new)

    def read(self, run_id: str, attempt: int, *, after: str | None, limit: int) -> LogPage:
        if (run_id, attempt) not in self.lines:
            return LogPage(lines=(), next=after)
        start = int(after or 0)
        page = self.lines[run_id, attempt][start : start + limit]
        return LogPage(lines=page, next=str(start + len(page)))


@dataclass
class FakeAccounts:
    """Accounts by the access key ids that AWS knows; `trouble` is raised by the next question."""

    known: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    trouble: list[Exception] = field(default_factory=list)

    def account_of(self, settings: AwsSettings, secret: Mapping[str, str]) -> str:
        if settings.role_account is not None:
            return settings.role_account
        if self.trouble:
            raise self.trouble.pop(0)
        key_id = secret["access_key_id"]
        self.asked.append(key_id)
        if key_id not in self.known:
            raise Credentials(
                "InvalidClientTokenId", "No such key.", mend="Check the access key id.", field="access_key_id"
            )
        return self.known[key_id]


@dataclass
class MemorySecrets:
    secrets: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def write(self, connection_id: str, secret: Mapping[str, str]) -> None:
        self.secrets[connection_id] = dict(secret)

    def read(self, connection_id: str) -> Mapping[str, str]:
        try:
            return self.secrets[connection_id]
        except KeyError:
            raise Credentials("credentials_missing", "They are not stored.", mend="Save them.") from None

    def delete(self, connection_id: str) -> None:
        self.secrets.pop(connection_id, None)
