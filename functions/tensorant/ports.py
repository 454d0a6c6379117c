"""What the services need of the world, as Protocols; `adapters` implements them.

All errors are those of `domain.errors`. Times are aware datetimes in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Protocol

from tensorant.contract import Event
from tensorant.domain.connections import AwsSettings, Catalog, CheckItem, Connection, GpuType, ImageFacts
from tensorant.domain.identity import Member, Organization
from tensorant.domain.machines import Call, Machine, Observation
from tensorant.domain.projects import DatasetContent, DatasetVersion, Project
from tensorant.domain.quotas import VcpuQuota
from tensorant.domain.runs import Progress, Run
from tensorant.domain.storages import StorageAbilities
from tensorant.domain.timeline import Fact

Entity = (
    Organization | Member | Connection | Catalog | Project | DatasetVersion | DatasetContent | Run | Machine
)
"""What the store keeps under a version: 0 has not been stored yet, each write adds one."""


class Clock(Protocol):
    def now(self) -> datetime: ...


class Ids(Protocol):
    def new(self, kind: str) -> str:
        """A fresh identifier such as `run-9f86d081884c7d65`."""
        ...

    def external_id(self) -> str:
        """A fresh external id of a role: 32 hexadecimal digits that nobody can guess."""
        ...


class Store(Protocol):
    """The record. Reads are consistent unless they list."""

    def commit(self, *changed: Entity, facts: Sequence[Fact] = (), unchanged: Sequence[Entity] = ()) -> None:
        """Write all or nothing.

        An entity of version 0 must not exist yet; any other must still have its version, and so must those
        that are only read (`unchanged`). A fact's id must be new in its run. Raises `Conflict` otherwise,
        and nothing is written.
        """
        ...

    def organization(self, organization_id: str) -> Organization: ...
    def member(self, organization_id: str, subject: str) -> Member | None: ...
    def memberships(self, subject: str) -> Sequence[Member]: ...
    def connection(self, organization_id: str, connection_id: str) -> Connection: ...
    def connections(self, organization_id: str) -> Sequence[Connection]: ...
    def catalog(self, connection_id: str) -> Catalog | None: ...
    def project(self, organization_id: str, project_id: str) -> Project: ...
    def projects(self, organization_id: str) -> Sequence[Project]: ...
    def dataset_version(self, organization_id: str, version_id: str) -> DatasetVersion: ...
    def dataset_versions(self, organization_id: str, project_id: str) -> Sequence[DatasetVersion]: ...
    def dataset_content(self, project_id: str, sha256: str) -> DatasetContent | None: ...
    def open_dataset_versions(self) -> Sequence[DatasetVersion]:
        """All versions of all organizations that are neither valid nor invalid yet. A listing: it may lag."""
        ...

    def run(self, run_id: str) -> Run: ...
    def runs(self, organization_id: str) -> Sequence[Run]:
        """Newest first."""
        ...

    def machine(self, run_id: str, attempt: int) -> Machine: ...
    def machines(self, run_id: str) -> Sequence[Machine]:
        """In the order of their attempts."""
        ...

    def open_machines(self) -> Sequence[Machine]:
        """All machines of all organizations that are not closed. A listing: it may lag a little."""
        ...

    def compute_connections(self) -> Sequence[Connection]:
        """All connections of all organizations that machines are made with. A listing: it may lag."""
        ...

    def removed_connections(self) -> Sequence[Connection]:
        """All removed connections, of every kind, whose credentials are still kept. A listing: it may lag."""
        ...

    def runs_under_way(self) -> Sequence[Run]:
        """All runs that were launched and have no outcome. A listing: it may lag a little."""
        ...

    def machine_by_instance(self, account_id: str, region: str, instance_id: str) -> Machine | None: ...
    def timeline(self, run_id: str) -> Sequence[Fact]:
        """In the order in which the facts were stored."""
        ...

    def progress(self, run_id: str) -> Progress | None: ...
    def save_progress(self, progress: Progress) -> None:
        """Last writer wins: progress decides nothing but when to look."""
        ...

    def terminal_event(self, run_id: str, attempt: int) -> Event | None: ...
    def save_terminal_event(self, run_id: str, attempt: int, event: Event) -> None:
        """The first one is kept: what ended an attempt does not change."""
        ...

    def signal(self, run_id: str) -> int:
        """Add a signal and return its number. Signals are never cleared."""
        ...

    def last_signal(self, run_id: str) -> int: ...
    def wait_with(self, run_id: str, task_token: str) -> None:
        """Store the token of the wait; a later one replaces it."""
        ...

    def waiter(self, run_id: str) -> str | None: ...


class Bus(Protocol):
    """The deployment's event bus, where administrators add targets."""

    def publish(self, facts: Sequence[Fact]) -> None:
        """Publish facts of runs. Raises `ProviderFault` if any was not taken; the caller repeats them all."""
        ...


class Secrets(Protocol):
    """Credentials of connections, as JSON objects."""

    def write(self, connection_id: str, secret: Mapping[str, str]) -> None: ...
    def read(self, connection_id: str) -> Mapping[str, str]: ...
    def delete(self, connection_id: str) -> None:
        """Delete a connection's credentials; none there is not an error."""
        ...


class Accounts(Protocol):
    """Whose credentials are, before they are stored."""

    def account_of(self, settings: AwsSettings, secret: Mapping[str, str]) -> str:
        """The account's id. Raises `Credentials` if they are not valid, `DOUBTFUL` errors if that is open."""
        ...


class Workflow(Protocol):
    def start(self, run: Run) -> None:
        """Start the run's recorded execution; one that exists already is the same."""
        ...

    def runs(self, run: Run) -> bool | None:
        """Whether the run's recorded execution is running; None if it was never started."""
        ...

    def wake(self, task_token: str) -> None:
        """End a wait. A token that is no longer waited for is not an error."""
        ...

    def beat(self, task_token: str) -> None:
        """Extend a wait; adds no history. A token that is no longer waited for is not an error."""
        ...


class Workers(Protocol):
    """Work that takes longer than an API answer. Started at least once, perhaps more often."""

    def check_connection(self, organization_id: str, connection_id: str) -> None: ...
    def validate_dataset(self, organization_id: str, version_id: str) -> None: ...


class RunLogs(Protocol):
    def append(
        self, run_id: str, attempt: int, source: str, lines: Sequence[str], *, at: datetime
    ) -> None: ...
    def read(self, run_id: str, attempt: int, *, after: str | None, limit: int) -> LogPage: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    at: datetime
    source: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """`next` goes into the following call; the same value again means nothing new."""

    lines: Sequence[LogLine]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFacts:
    size: int
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageCheck:
    """What a check of storage saw; `abilities` is None if it failed before they were tried."""

    items: Sequence[CheckItem]
    abilities: StorageAbilities | None


class ObjectStore(Protocol):
    """One organization's storage; keys are relative to its prefix."""

    def check(self) -> StorageCheck:
        """Write, read, list and delete a small object, and try what a store may do without."""
        ...

    def head(self, key: str) -> ObjectFacts | None:
        """None if there is no such object."""
        ...

    def read(self, key: str, offset: int, length: int, *, etag: str) -> bytes:
        """Raises `Storage` if the object is no longer the one with that ETag."""
        ...

    def stream(self, key: str, offset: int, length: int, *, etag: str) -> Iterator[bytes]: ...
    def get(self, key: str, *, limit: int) -> bytes | None:
        """A whole small object; None if there is none. Raises `Storage` above `limit` bytes."""
        ...

    def keys(self, under: str) -> Iterator[str]:
        """Every key that begins with `under`, in no certain order."""
        ...

    def put(self, key: str, content: bytes | Iterable[bytes], *, replace: bool = True) -> None:
        """Write an object of any size, streamed. Raises `Conflict` (object_exists) where none may be replaced."""
        ...

    def delete(self, key: str) -> None:
        """Deleting what is not there is not an error."""
        ...

    def presign_get(self, key: str, *, lasting: timedelta) -> str:
        """A URL that downloads. Raises `Configuration` (storage_without_presigning) where there is no such thing."""
        ...

    def presign_put(self, key: str, *, lasting: timedelta) -> str: ...


class Staging(Protocol):
    """The deployment's own bucket, where files that people bring land first."""

    def upload_url(self, key: str, *, lasting: timedelta) -> str: ...
    def stream(self, key: str) -> Iterator[bytes] | None:
        """None if nothing was uploaded."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeCheck:
    """What a check saw; `types` is None if the catalog could not be read."""

    items: Sequence[CheckItem]
    account_id: str | None
    image: ImageFacts | None
    subnet_zones: Mapping[str, str] | None = None
    """None if the subnets could not be read."""
    types: tuple[GpuType, ...] | None = None
    excluded: Mapping[str, str] = field(default_factory=dict)
    disk_usd_per_gib_month: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentPrice:
    """US dollars; None where the provider gives no single price."""

    compute_usd_per_hour: Decimal | None
    disk_usd_per_gib_month: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A machine as a listing shows it. `run_id` and `attempt` are what its tags say."""

    observation: Observation
    client_token: str | None
    run_id: str | None
    attempt: int | None


class Compute(Protocol):
    """One connection to a provider of machines. Never starts one except in `ask`."""

    def check(self, settings: AwsSettings) -> ComputeCheck: ...
    def prices(self, instance_types: Sequence[str]) -> Mapping[str, CurrentPrice]:
        """The present prices of all of the types, with as few questions as it takes."""
        ...

    def quota(self, instance_type: str) -> VcpuQuota:
        """What is left of the quota that a machine of the type takes from; unknown parts say why."""
        ...

    def ask(self, machine: Machine, *, user_data: str) -> Observation:
        """Ask for the machine of this record. The same record twice makes one machine.

        `Throttled` and `ProviderFault` leave it open whether it was made; other errors are a definite no.
        Raises `Credentials` if they are of another account than the record's: what was made there could
        never be found, nor released, by the recorded one.
        """
        ...

    def observe(self, machine: Machine) -> Observation:
        """Read the machine, by its id or, without one, by its client token."""
        ...

    def make(self, call: Call, machine: Machine) -> None: ...
    def listed(self, deployment_id: str) -> Sequence[Listed]:
        """Every machine tagged for the deployment that is not gone, read page by page."""
        ...

    def stop(self, instance_id: str) -> None:
        """Stop a machine that no record knows; its disk is kept."""
        ...


class Computes(Protocol):
    def open(self, connection: Connection) -> Compute: ...


class ObjectStores(Protocol):
    def open(self, connection: Connection) -> ObjectStore: ...
