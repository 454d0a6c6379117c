"""Reading runs: what they are, what happened, what they said, what they made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from tensorant.domain.costs import cost
from tensorant.domain.errors import Conflict
from tensorant.domain.identity import Actor
from tensorant.domain.machines import Goal, Machine
from tensorant.domain.maintenance import standing_warnings
from tensorant.domain.runs import Adapter, Phase, Progress, Run
from tensorant.domain.timeline import Fact
from tensorant.domain.volumes import kept_volumes
from tensorant.ports import Clock, LogPage, ObjectStores, RunLogs, Store
from tensorant.services.access import member_of, run_of

DOWNLOAD_LASTS = timedelta(minutes=15)


@dataclass(frozen=True)
class RunStatus:
    """Three separate facts of a run, outcome, machine and cost, and its latest progress."""

    run: Run
    machine: Machine | None
    progress: Progress | None
    cost_usd: Decimal
    at: datetime
    """The moment of this reading."""
    warnings: Sequence[Fact] = ()
    """What is scheduled for its machines, and disks that outlive them: what still stands."""

    @property
    def phase(self) -> Phase:
        """One word for where it stands: what is decided first, then what the machine said last."""
        if self.run.launched_at is None:
            return Phase.DRAFT if self.run.outcome is None else Phase.ENDED
        if self.machine is None or self.machine.closed or self.machine.goal is Goal.RUN:
            if self.run.outcome is not None:
                return Phase.ENDED
            return self.progress.phase if self.progress else Phase.LAUNCHING
        if self.machine.restarted:
            return Phase.RECOVERING
        if self.machine.at_goal:
            return Phase.ENDED
        return Phase.RELEASING if self.machine.goal is Goal.GONE else Phase.STOPPING


@dataclass(frozen=True)
class RunReader:
    store: Store
    logs: RunLogs
    clock: Clock

    def show(self, actor: Actor, organization_id: str, run_id: str) -> RunStatus:
        run = run_of(organization_id, run_id, actor, store=self.store)
        machines = self.store.machines(run.id)
        now = self.clock.now()
        return RunStatus(
            run,
            machines[-1] if machines else None,
            self.store.progress(run.id),
            cost_usd=sum((cost(machine, now=now) for machine in machines), Decimal(0)),
            at=now,
            warnings=self._warnings(machines),
        )

    def _warnings(self, machines: Sequence[Machine]) -> Sequence[Fact]:
        if all(machine.closed and machine.kept_volume is None for machine in machines):
            return ()
        timeline = self.store.timeline(machines[0].run_id)
        return (*standing_warnings(timeline, machines), *kept_volumes(timeline, machines))

    def list(self, actor: Actor, organization_id: str) -> Sequence[Run]:
        member_of(organization_id, actor, store=self.store)
        return self.store.runs(organization_id)

    def events(self, actor: Actor, organization_id: str, run_id: str) -> Sequence[Fact]:
        run_of(organization_id, run_id, actor, store=self.store)
        return self.store.timeline(run_id)

    def log(
        self, actor: Actor, organization_id: str, run_id: str, *, after: str | None, limit: int
    ) -> LogPage:
        """A page of the latest attempt's log, oldest first."""
        run = run_of(organization_id, run_id, actor, store=self.store)
        return self.logs.read(run_id, max(1, run.attempt), after=after, limit=limit)


@dataclass(frozen=True)
class AdapterDownload:
    adapter: Adapter
    url: str
    expires_in: timedelta = DOWNLOAD_LASTS


@dataclass(frozen=True)
class Adapters:
    """Verified adapters, straight from the organization's storage."""

    store: Store
    storages: ObjectStores

    def download(self, actor: Actor, organization_id: str, run_id: str) -> AdapterDownload:
        """Where to get the verified archive. Raises `Conflict` while there is none."""
        run = run_of(organization_id, run_id, actor, store=self.store)
        if run.adapter is None:
            raise Conflict(
                "no_adapter",
                f"The run {run_id} has no verified adapter.",
                mend="Wait until the run has succeeded, or recover its adapter.",
            )
        storage = self.storages.open(self.store.connection(organization_id, run.storage_connection_id))
        facts = storage.head(run.adapter.key)
        if facts is None or facts.etag != run.adapter.etag:
            raise Conflict(
                "adapter_changed",
                f"The object {run.adapter.key} is no longer the one that was verified.",
                mend="Find out who changed or removed it in your storage.",
            )
        url = storage.presign_get(run.adapter.key, lasting=DOWNLOAD_LASTS)
        return AdapterDownload(run.adapter, url)
