"""The store of a simulated world: remembers every version that was written, and lists with a lag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from tensorant.domain.connections import Connection
from tensorant.domain.machines import Machine
from tensorant.domain.runs import Run
from tensorant.domain.timeline import Fact
from tensorant.ports import Entity
from tests.simulation.faults import Faults
from tests.simulation.scheduler import Scheduler
from tests.support.fakes import MemoryStore

T = TypeVar("T", Run, Machine)

LAG_SECONDS = 5.0
"""How old an index may be while something is going wrong."""


class WatchedStore(MemoryStore):
    """`written` has every version with its moment, in order: the promises look back at it."""

    def __init__(self, scheduler: Scheduler, faults: Faults, random: Random) -> None:
        super().__init__()
        self.written: list[tuple[float, Entity]] = []
        self.signalled: list[tuple[float, str, int]] = []
        """Moment, run and number of each signal."""
        self.registered: dict[str, float] = {}
        """When each task token was stored."""
        self._scheduler, self._faults, self._random = scheduler, faults, random

    def commit(self, *changed: Entity, facts: Sequence[Fact] = (), unchanged: Sequence[Entity] = ()) -> None:
        super().commit(*changed, facts=facts, unchanged=unchanged)
        now = self._scheduler.now
        self.written.extend((now, replace(each, version=each.version + 1)) for each in changed)

    def signal(self, run_id: str) -> int:
        number = super().signal(run_id)
        self.signalled.append((self._scheduler.now, run_id, number))
        return number

    def wait_with(self, run_id: str, task_token: str) -> None:
        super().wait_with(run_id, task_token)
        self.registered.setdefault(task_token, self._scheduler.now)

    def versions(self, run_id: str, attempt: int) -> Iterator[tuple[float, Machine]]:
        """Every version of a machine, with its moment."""
        for at, each in self.written:
            if isinstance(each, Machine) and (each.run_id, each.attempt) == (run_id, attempt):
                yield at, each

    # -- listings ----------------------------------------------------------------------------------------

    def open_machines(self) -> Sequence[Machine]:
        return [each for each in self._listed(Machine) if not each.closed]

    def runs_under_way(self) -> Sequence[Run]:
        return [each for each in self._listed(Run) if each.under_way]

    def compute_connections(self) -> Sequence[Connection]:
        return [each for each in self._all(Connection) if each.kind.is_compute and not each.removed]

    def machine_by_instance(self, account_id: str, region: str, instance_id: str) -> Machine | None:
        wanted = (account_id, region, instance_id)
        return next(
            (
                each
                for each in self._listed(Machine)
                if (each.account_id, each.parameters.region, each.instance_id) == wanted
            ),
            None,
        )

    def _listed(self, kind: type[T]) -> list[T]:
        """The entities as an index shows them: perhaps a few seconds old."""
        if not self._faults.active or self._random.random() < 0.5:
            return list(self._all(kind))
        until = self._scheduler.now - self._random.random() * LAG_SECONDS
        seen: dict[tuple[str, int], T] = {}
        for at, each in self.written:
            if isinstance(each, kind) and at <= until:
                seen[_name(each)] = each
        return list(seen.values())


def _name(entity: Run | Machine) -> tuple[str, int]:
    return (entity.id, 0) if isinstance(entity, Run) else (entity.run_id, entity.attempt)
