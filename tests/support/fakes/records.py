"""`ports.Store` in memory, with the same conditions on every write, and a way to be faster than a writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from threading import RLock
from typing import TypeVar

from tensorant.contract import Event
from tensorant.domain.connections import Catalog, Connection
from tensorant.domain.errors import Conflict, NotFound
from tensorant.domain.identity import Member, Organization
from tensorant.domain.machines import Machine
from tensorant.domain.projects import DatasetContent, DatasetVersion, Project
from tensorant.domain.runs import Progress, Run
from tensorant.domain.timeline import Fact
from tensorant.ports import Entity

T = TypeVar("T")
Key = tuple[object, ...]


class MemoryStore:
    """Keeps what was committed; `commits` are the entities of each commit that was written, in order."""

    def __init__(self) -> None:
        self.commits: list[tuple[Entity, ...]] = []
        self._entities: dict[Key, Entity] = {}
        self._facts: dict[tuple[str, str], Fact] = {}
        self._progress: dict[str, Progress] = {}
        self._terminal: dict[tuple[str, int], Event] = {}
        self._signals: dict[str, int] = {}
        self._waiters: dict[str, str] = {}
        self._interferences: list[Callable[[], object]] = []
        self._trouble: list[Exception] = []
        self._lock = RLock()

    # -- for tests ---------------------------------------------------------------------------------------

    def before_next_commit(self, action: Callable[[], object]) -> None:
        """Let somebody be faster: `action` runs when the next commit has been asked for, before it is made."""
        self._interferences.append(action)

    def fail_next_commit(self, error: Exception) -> None:
        self._trouble.append(error)

    # -- writing -----------------------------------------------------------------------------------------

    def commit(self, *changed: Entity, facts: Sequence[Fact] = (), unchanged: Sequence[Entity] = ()) -> None:
        while self._interferences:
            self._interferences.pop(0)()
        if self._trouble:
            raise self._trouble.pop(0)
        with self._lock:
            self._require_writable(changed, facts, unchanged)
            for entity in changed:
                self._entities[_key(entity)] = replace(entity, version=entity.version + 1)
            for fact in facts:
                self._facts[fact.run_id, fact.id] = fact
            self.commits.append(changed)

    def _require_writable(
        self, changed: Sequence[Entity], facts: Sequence[Fact], unchanged: Sequence[Entity]
    ) -> None:
        expected = [*changed, *unchanged]
        keys = [_key(entity) for entity in expected]
        names = [(fact.run_id, fact.id) for fact in facts]
        if len({*keys, *names}) != len(expected) + len(facts):
            raise AssertionError("a transaction can't write the same item twice")
        stale = any(self._version(key) != entity.version for key, entity in zip(keys, expected, strict=True))
        if stale or any(name in self._facts for name in names):
            raise Conflict("changed_meanwhile", "The record changed.", mend="Read it and try again.")

    def _version(self, key: Key) -> int:
        return self._entities[key].version if key in self._entities else 0

    def save_progress(self, progress: Progress) -> None:
        self._progress[progress.run_id] = progress

    def save_terminal_event(self, run_id: str, attempt: int, event: Event) -> None:
        self._terminal.setdefault((run_id, attempt), event)

    def signal(self, run_id: str) -> int:
        with self._lock:
            self._signals[run_id] = self._signals.get(run_id, 0) + 1
            return self._signals[run_id]

    def wait_with(self, run_id: str, task_token: str) -> None:
        self._waiters[run_id] = task_token

    # -- reading -----------------------------------------------------------------------------------------

    def organization(self, organization_id: str) -> Organization:
        return self._get(Organization, "organization", organization_id)

    def member(self, organization_id: str, subject: str) -> Member | None:
        return self._find(Member, organization_id, subject)

    def memberships(self, subject: str) -> Sequence[Member]:
        found = [each for each in self._all(Member) if each.subject == subject]
        return sorted(found, key=lambda each: each.organization_id)

    def connection(self, organization_id: str, connection_id: str) -> Connection:
        return self._get(Connection, "connection", organization_id, connection_id)

    def connections(self, organization_id: str) -> Sequence[Connection]:
        found = [each for each in self._all(Connection) if each.organization_id == organization_id]
        return sorted(found, key=lambda each: each.id)

    def catalog(self, connection_id: str) -> Catalog | None:
        return self._find(Catalog, connection_id)

    def project(self, organization_id: str, project_id: str) -> Project:
        return self._get(Project, "project", organization_id, project_id)

    def projects(self, organization_id: str) -> Sequence[Project]:
        found = [each for each in self._all(Project) if each.organization_id == organization_id]
        return sorted(found, key=lambda each: each.id)

    def dataset_version(self, organization_id: str, version_id: str) -> DatasetVersion:
        return self._get(DatasetVersion, "dataset version", organization_id, version_id)

    def dataset_versions(self, organization_id: str, project_id: str) -> Sequence[DatasetVersion]:
        found = [
            each
            for each in self._all(DatasetVersion)
            if (each.organization_id, each.project_id) == (organization_id, project_id)
        ]
        return sorted(found, key=lambda each: each.created_at)

    def dataset_content(self, project_id: str, sha256: str) -> DatasetContent | None:
        return self._find(DatasetContent, project_id, sha256)

    def open_dataset_versions(self) -> Sequence[DatasetVersion]:
        found = [each for each in self._all(DatasetVersion) if each.is_open]
        return sorted(found, key=lambda each: (each.organization_id, each.id))

    def run(self, run_id: str) -> Run:
        return self._get(Run, "run", run_id)

    def runs(self, organization_id: str) -> Sequence[Run]:
        found = [each for each in self._all(Run) if each.organization_id == organization_id]
        return sorted(found, key=lambda each: (each.created_at, each.id), reverse=True)

    def machine(self, run_id: str, attempt: int) -> Machine:
        return self._get(Machine, "attempt", run_id, attempt)

    def machines(self, run_id: str) -> Sequence[Machine]:
        found = [each for each in self._all(Machine) if each.run_id == run_id]
        return sorted(found, key=lambda each: each.attempt)

    def open_machines(self) -> Sequence[Machine]:
        found = [each for each in self._all(Machine) if not each.closed]
        return sorted(found, key=lambda each: (each.run_id, each.attempt))

    def compute_connections(self) -> Sequence[Connection]:
        found = [each for each in self._all(Connection) if each.kind.is_compute and not each.removed]
        return sorted(found, key=lambda each: each.id)

    def removed_connections(self) -> Sequence[Connection]:
        found = [each for each in self._all(Connection) if each.removed and each.purged_at is None]
        return sorted(found, key=lambda each: each.id)

    def runs_under_way(self) -> Sequence[Run]:
        found = [each for each in self._all(Run) if each.under_way]
        return sorted(found, key=lambda each: each.id)

    def machine_by_instance(self, account_id: str, region: str, instance_id: str) -> Machine | None:
        wanted = (account_id, region, instance_id)
        found = (
            each
            for each in self._all(Machine)
            if (each.account_id, each.parameters.region, each.instance_id) == wanted
        )
        return next(found, None)

    def timeline(self, run_id: str) -> Sequence[Fact]:
        return [fact for fact in self._facts.values() if fact.run_id == run_id]

    def progress(self, run_id: str) -> Progress | None:
        return self._progress.get(run_id)

    def terminal_event(self, run_id: str, attempt: int) -> Event | None:
        return self._terminal.get((run_id, attempt))

    def last_signal(self, run_id: str) -> int:
        return self._signals.get(run_id, 0)

    def waiter(self, run_id: str) -> str | None:
        return self._waiters.get(run_id)

    def _get(self, kind: type[T], what: str, *names: object) -> T:
        found = self._find(kind, *names)
        if found is None:
            raise NotFound(what, str(names[-1]))
        return found

    def _find(self, kind: type[T], *names: object) -> T | None:
        found = self._entities.get((kind, *names))
        return found if isinstance(found, kind) else None

    def _all(self, kind: type[T]) -> Iterator[T]:
        return (each for each in list(self._entities.values()) if isinstance(each, kind))


def _key(entity: Entity) -> Key:
    match entity:
        case Organization():
            return (Organization, entity.id)
        case Member():
            return (Member, entity.organization_id, entity.subject)
        case Catalog():
            return (Catalog, entity.connection_id)
        case Connection() | Project() | DatasetVersion():
            return (type(entity), entity.organization_id, entity.id)
        case DatasetContent():
            return (DatasetContent, entity.project_id, entity.sha256)
        case Run():
            return (Run, entity.id)
        case Machine():
            return (Machine, entity.run_id, entity.attempt)
