"""Looking at a machine and deciding what is next."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorant.contract import MANIFEST_OBJECT
from tensorant.domain.failures import NEXT_CANDIDATE, Failure
from tensorant.domain.machines import Goal, Machine
from tensorant.domain.offers import offered
from tensorant.domain.runs import Run
from tensorant.domain.steps import Next, Step
from tensorant.domain.verdicts import Evidence, judge
from tensorant.domain.waiting import patience
from tensorant.ports import Clock, Computes, ObjectStores, Store
from tensorant.services.conclusions import give_up, pass_over
from tensorant.services.conflicts import until_settled
from tensorant.services.converge import record


@dataclass(frozen=True)
class Observer:
    """The workflow's step ObserveMachine."""

    store: Store
    computes: Computes
    storages: ObjectStores
    clock: Clock

    def observe(self, step: Step) -> Step:
        """Read provider, storage, heartbeat and limit, and decide.

        The signal's number is read first: a signal that comes while we look wakes the next wait.
        Trouble with the provider or the storage raises; the step is repeated.
        """
        signal = self.store.last_signal(step.run_id)
        run = self.store.run(step.run_id)
        attempt = step.attempt or run.attempt
        step = replace(step, signal=signal, attempt=attempt)
        machine = until_settled(lambda: self._look(run, attempt))
        if machine.goal is not Goal.RUN:
            return replace(step, next=Next.RELEASE if machine.goal is Goal.GONE else Next.STOP)
        return self._decide(step, run, machine)

    def _look(self, run: Run, attempt: int) -> Machine:
        machine = self.store.machine(run.id, attempt)
        if machine.closed:
            return machine
        connection = self.store.connection(machine.organization_id, machine.connection_id)
        seen = self.computes.open(connection).observe(machine)
        return record(machine, seen, store=self.store, clock=self.clock)

    def _decide(self, step: Step, run: Run, machine: Machine) -> Step:
        now = self.clock.now()
        progress = self.store.progress(run.id)
        heard_at = progress.heard_at if progress and progress.attempt == machine.attempt else None
        deadline_at = run.deadline_at or now
        uploaded = self._uploaded(run, machine)
        verdict = judge(
            Evidence(
                machine=machine,
                now=now,
                deadline_at=deadline_at,
                heard_at=heard_at,
                terminal_event=self.store.terminal_event(run.id, machine.attempt),
                finished=uploaded is not None,
                tried=uploaded is not None and machine.delivery.verifying == uploaded,
            )
        )
        if verdict.failure is not None:
            return self._give_up(step, verdict.failure)
        wait = patience(now, deadline_at=deadline_at, has_spoken=heard_at is not None)
        return replace(
            step,
            next=verdict.next,
            heartbeat_seconds=wait.heartbeat_seconds,
            timeout_seconds=wait.timeout_seconds,
        )

    def _uploaded(self, run: Run, machine: Machine) -> str | None:
        """The ETag of the object beside the archive; None if there is none, or only that of a refused upload."""
        connection = self.store.connection(run.organization_id, run.storage_connection_id)
        storage = self.storages.open(connection)
        facts = storage.head(run.prefix(machine.attempt) + MANIFEST_OBJECT)
        return None if facts is None or machine.delivery.has_refused(facts.etag) else facts.etag

    def _give_up(self, step: Step, failure: Failure) -> Step:
        def decide() -> Goal:
            run, machine = self.store.run(step.run_id), self.store.machine(step.run_id, step.attempt)
            if machine.goal is not Goal.RUN:
                return machine.goal
            conclude = pass_over if self._goes_on(run, machine, failure) else give_up
            return conclude(run, machine, failure, store=self.store, clock=self.clock)

        goal = until_settled(decide)
        return replace(step, next=Next.RELEASE if goal is Goal.GONE else Next.STOP)

    def _goes_on(self, run: Run, machine: Machine, failure: Failure) -> bool:
        """A machine that could not run costs its candidate, not the run: while time and another one are left."""
        if failure.failure_class not in NEXT_CANDIDATE or not machine.never_ran:
            return False
        if not run.under_way or run.deadline_at is None or self.clock.now() >= run.deadline_at:
            return False
        connection = self.store.connection(run.organization_id, run.draft.connection_id)
        offers = offered(run.draft.instance_types, connection, self.store.catalog(connection.id))
        return run.refusing(machine.candidate).next_candidate(offers) is not None
