"""The second line: finds what the workflow, events and people have left undone, and does it.

Absence from a listing proves nothing, since tags can be removed: a recorded machine that is missing from it
is read by its id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from tensorant.domain.connections import Connection
from tensorant.domain.costs import cost
from tensorant.domain.errors import Conflict, FailureClass, TensorantError
from tensorant.domain.failures import Failure
from tensorant.domain.machines import Goal, Machine, Observation, Seen
from tensorant.domain.runs import Run
from tensorant.domain.timeline import Fact
from tensorant.domain.verdicts import RECOVER
from tensorant.ports import Clock, Compute, Computes, Listed, Store, Workflow
from tensorant.services.conclusions import give_up
from tensorant.services.conflicts import until_settled
from tensorant.services.converge import converge
from tensorant.services.execution_ended import ExecutionEnds
from tensorant.services.removals import Purges
from tensorant.services.signals import signal

GRACE = timedelta(minutes=10)
"""What is younger is still in other hands."""

UNKNOWN_GRACE = timedelta(hours=1)
"""How long a machine that no record knows is only reported before it is stopped."""

REMINDER_DAYS = (1, 3, 7)

OVERDUE = Failure(
    failure_class=FailureClass.DEADLINE,
    code="time_limit",
    message="The run's time limit was reached, and its workflow had not noticed.",
    mend=RECOVER,
)


@dataclass
class SweepReport:
    """What one sweep did. `unknown` and `troubled` are for an administrator to look at."""

    started: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    overdue: list[str] = field(default_factory=list)
    converged: list[str] = field(default_factory=list)
    retained: list[str] = field(default_factory=list)
    purged: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    troubled: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Sweep:
    store: Store
    computes: Computes
    workflow: Workflow
    clock: Clock
    purges: Purges
    deployment_id: str

    def sweep(self) -> SweepReport:
        """One pass. Trouble with one run or connection is reported and does not stop the pass."""
        report = SweepReport()
        for run in self.store.runs_under_way():
            with_trouble(report, run.id, partial(self._tend, run, report))
        by_connection: dict[str, list[Machine]] = defaultdict(list)
        for machine in self.store.open_machines():
            by_connection[machine.connection_id].append(machine)
        removed = self.store.removed_connections()
        removed_compute = (connection for connection in removed if connection.kind.is_compute)
        for connection in [*self.store.compute_connections(), *removed_compute]:
            machines = by_connection.pop(connection.id, [])
            with_trouble(report, connection.id, partial(self._visit, connection, machines, report))
        for connection in removed:
            with_trouble(report, connection.id, partial(self._purge, connection, report))
        for connection_id in by_connection:
            report.troubled[connection_id] = (
                "Its machines could not be visited: the connection was not listed."
            )
        return report

    # -- runs --------------------------------------------------------------------------------------------

    def _tend(self, run: Run, report: SweepReport) -> None:
        """Start what was never started, end what nobody works on, stop what is past its limit."""
        now = self.clock.now()
        if run.launched_at is None or now < run.launched_at + GRACE:
            return
        running = self.workflow.runs(run)
        if running is None:
            self.workflow.start(run)
            report.started.append(run.id)
        elif not running:
            ExecutionEnds(self.store, self.computes, self.clock).ended(run.id)
            report.ended.append(run.id)
        elif run.deadline_at is not None and now > run.deadline_at + GRACE:
            until_settled(lambda: self._enforce(run.id))
            signal(run.id, store=self.store, workflow=self.workflow)
            report.overdue.append(run.id)

    def _enforce(self, run_id: str) -> None:
        run = self.store.run(run_id)
        if not run.under_way or not run.attempt:
            return
        machine = self.store.machine(run_id, run.attempt)
        if machine.goal is Goal.RUN and not machine.closed:
            give_up(run, machine, OVERDUE, store=self.store, clock=self.clock)

    # -- machines ----------------------------------------------------------------------------------------

    def _visit(self, connection: Connection, machines: Sequence[Machine], report: SweepReport) -> None:
        """One listing for all machines of a connection."""
        compute = self.computes.open(connection)
        listed = compute.listed(self.deployment_id)
        readings = _readings(listed)
        for machine in machines:
            reading = readings.get(machine.instance_id or machine.client_token)
            with_trouble(
                report,
                machine.instance_id or machine.client_token,
                partial(self._refresh, machine, reading, compute, report),
            )
        self._report_unknown(listed, compute, report)

    def _refresh(
        self, machine: Machine, reading: Observation | None, compute: Compute, report: SweepReport
    ) -> None:
        def act() -> Machine:
            current = self.store.machine(machine.run_id, machine.attempt)
            fresh = reading if current.version == machine.version else None
            return converge(current, compute=compute, store=self.store, clock=self.clock, seen=fresh)

        after = until_settled(act)
        name = f"{machine.run_id}/{machine.attempt}"
        if after.goal is Goal.STOPPED and after.seen is Seen.STOPPED:
            report.retained.append(name)
            self._remind(after)
        elif after.version != machine.version:
            report.converged.append(name)

    def _remind(self, machine: Machine) -> None:
        """A kept disk costs money for as long as nobody decides: told after one, three and seven days."""
        now = self.clock.now()
        if machine.confirmed_stopped_at is None:
            return
        for days in REMINDER_DAYS:
            if now < machine.confirmed_stopped_at + timedelta(days=days):
                return
            fact = Fact(
                run_id=machine.run_id,
                id=f"machine-{machine.attempt}-retained-{days}-days-since-{machine.confirmed_stopped_at:%Y%m%d%H%M}",
                at=now,
                kind="machine_still_retained",
                source="sweep",
                message=f"Its disk has been kept for {days} day{'s' if days > 1 else ''}: ${cost(machine, now=now)} so far.",
                attempt=machine.attempt,
            )
            with suppress(Conflict):  # it has been told
                self.store.commit(facts=[fact])

    def _purge(self, connection: Connection, report: SweepReport) -> None:
        if self.purges.purge(connection):
            report.purged.append(connection.id)

    def _report_unknown(self, listed: Sequence[Listed], compute: Compute, report: SweepReport) -> None:
        """A machine tagged for this deployment that no record knows costs money: told, and later stopped."""
        now = self.clock.now()
        for each in listed:
            if self._known(each):
                continue
            instance_id = each.observation.instance_id or ""
            report.unknown.append(instance_id)
            if each.observation.state is Seen.RUNNING and _older(each.observation, now - UNKNOWN_GRACE):
                with_trouble(report, instance_id, partial(compute.stop, instance_id))

    def _known(self, listed: Listed) -> bool:
        if listed.run_id is None or listed.attempt is None:
            return False
        machines = self.store.machines(listed.run_id)
        machine = next((each for each in machines if each.attempt == listed.attempt), None)
        if machine is None:
            return False
        waiting = machine.instance_id is None and not machine.closed
        unanswered = waiting and machine.client_token == listed.client_token
        return unanswered or machine.instance_id == listed.observation.instance_id


def with_trouble(report: SweepReport, name: str, act: Callable[[], object]) -> None:
    """Do one thing of many; what goes wrong is reported under its name."""
    try:
        act()
    except TensorantError as error:
        report.troubled[name] = f"{error.message} {error.mend}".strip()


def _readings(listed: Sequence[Listed]) -> Mapping[str, Observation]:
    """By instance id, and by client token for asks that got no answer."""
    by_id = {
        each.observation.instance_id: each.observation for each in listed if each.observation.instance_id
    }
    by_token = {each.client_token: each.observation for each in listed if each.client_token}
    return {**by_token, **by_id}


def _older(observation: Observation, moment: datetime) -> bool:
    return observation.started_at is not None and observation.started_at < moment
