"""Bringing a machine to its goal: the only place that stops or terminates one.

The workflow, events, users and the sweep all do the same two things, in any order and any number of
times: raise the goal, converge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from tensorant.domain.errors import DOUBTFUL, Conflict, NotYetConfirmed, ProviderError
from tensorant.domain.failures import Failure
from tensorant.domain.machines import Goal, Machine, MachineState, Observation, next_call
from tensorant.domain.steps import Next, Step
from tensorant.domain.timeline import Fact
from tensorant.domain.volumes import VOLUME_KEPT, newly_kept, told_kept, told_left_over
from tensorant.ports import Clock, Compute, Computes, Store
from tensorant.services.conclusions import INTERRUPTED, fail, give_up
from tensorant.services.conflicts import until_settled
from tensorant.services.facts import machine_fact, told


def converge(
    machine: Machine, *, compute: Compute, store: Store, clock: Clock, seen: Observation | None = None
) -> Machine:
    """Read the provider and make at most one call toward the machine's goal.

    `seen` is a reading that the caller has just made. Safe to repeat and to race: goals are only raised, and
    the record is written only if nobody changed it meanwhile (raises `Conflict`; read again and call again).
    Raises provider errors as they come; a refusal is kept in the machine's record.
    """
    if machine.closed:
        return machine
    now = clock.now()
    try:
        seen = seen or compute.observe(machine)
        shielded = machine.observed(seen, at=now).shielded(now)
        if call := next_call(machine.goal, seen.state, shielded=shielded):
            compute.make(call, replace(machine, instance_id=machine.instance_id or seen.instance_id))
    except DOUBTFUL:
        raise
    except ProviderError as error:
        _keep_trouble(machine, Failure.of(error), store=store, clock=clock)
        raise
    return record(replace(machine, trouble=None), seen, stored=machine, store=store, clock=clock)


def converge_recorded(
    run_id: str, attempt: int, *, store: Store, computes: Computes, clock: Clock
) -> Machine:
    """Read an attempt's record, open its connection and converge, until nobody is faster.

    Returns the machine as stored; a closed one is left alone.
    """

    def once() -> Machine:
        machine = store.machine(run_id, attempt)
        if machine.closed:
            return machine
        connection = store.connection(machine.organization_id, machine.connection_id)
        return converge(machine, compute=computes.open(connection), store=store, clock=clock)

    return until_settled(once)


def record(
    machine: Machine, seen: Observation, *, store: Store, clock: Clock, stored: Machine | None = None
) -> Machine:
    """Store what the provider said, if it is news; returns the machine as stored."""
    now = clock.now()
    stored, observed = stored or machine, machine.observed(seen, at=now)
    if replace(observed, seen_at=stored.seen_at) == stored:
        return machine
    store.commit(observed, facts=_facts(stored, observed, at=now))
    return replace(observed, version=machine.version + 1)


def _facts(before: Machine, after: Machine, *, at: datetime) -> list[Fact]:
    """What a reading tells: the state, unless only the disk has come into sight; and that a disk stays."""
    facts = []
    if replace(after, seen_at=before.seen_at, root_volume=before.root_volume) != before:
        said = f"{after.reason} {told_left_over(after)}".strip()
        facts.append(machine_fact(before, _news(after), said, at=at, source="provider"))
    if newly_kept(before, after):
        facts.append(machine_fact(before, VOLUME_KEPT, told_kept(after), at=at, source="provider"))
    return facts


def _keep_trouble(machine: Machine, trouble: Failure, *, store: Store, clock: Clock) -> None:
    """What stands between a machine and its goal, for people to mend; told once."""
    if machine.trouble == trouble:
        return
    fact = machine_fact(machine, "machine_trouble", told(trouble), at=clock.now(), source="provider")
    store.commit(replace(machine, trouble=trouble), facts=[fact])


def _news(machine: Machine) -> str:
    if machine.restarted:
        return "machine_recovering"
    if machine.closed:
        return "machine_released" if machine.state is MachineState.RELEASED else "machine_never_existed"
    return f"machine_{machine.seen}"


@dataclass(frozen=True)
class Converger:
    """The workflow's steps ReleaseMachine, ConfirmReleased, StopMachine and ConfirmStopped."""

    store: Store
    computes: Computes
    clock: Clock

    def toward(self, step: Step, goal: Goal, *, confirm: bool) -> Step:
        """See that the machine's goal is raised, and converge. Attempt 0 stands for the run's latest.

        With `confirm`, raises `NotYetConfirmed` until the provider has said that the goal is reached.
        """
        attempt = step.attempt or self.store.run(step.run_id).attempt
        if not attempt:
            until_settled(lambda: self._end_unrented(step.run_id))
            return replace(step, attempt=0, next=Next.END)
        until_settled(lambda: self._raise(step.run_id, attempt, goal))
        machine = converge_recorded(
            step.run_id, attempt, store=self.store, computes=self.computes, clock=self.clock
        )
        if confirm and not machine.at_goal:
            raise NotYetConfirmed(
                "not_yet_confirmed",
                f"The machine {machine.instance_id} is {machine.seen}; its goal is {machine.goal.name.lower()}.",
                mend="Nothing to do: the provider is asked again.",
            )
        return replace(step, attempt=attempt, next=self._after(step.run_id, machine))

    def _after(self, run_id: str, machine: Machine) -> Next:
        """A run that goes on without this machine asks for another one."""
        goes_on = machine.closed and self.store.run(run_id).under_way
        return Next.LAUNCH if goes_on else Next.END

    def _raise(self, run_id: str, attempt: int, goal: Goal) -> None:
        """What was decided before stays; a workflow that broke off keeps what there may be."""
        run, machine = self.store.run(run_id), self.store.machine(run_id, attempt)
        if machine.closed:
            if goal is Goal.STOPPED:
                self._end_unrented(run_id, machine.refusal)
        elif machine.goal < goal and goal is Goal.GONE:
            raise Conflict(
                "no_disposition",
                f"The machine of {run_id} may not go: its output is neither verified nor discarded.",
                mend="Recover the adapter or discard the output first.",
            )
        elif machine.goal < goal:
            give_up(run, machine, INTERRUPTED, store=self.store, clock=self.clock)

    def _end_unrented(self, run_id: str, refusal: Failure | None = None) -> None:
        run = self.store.run(run_id)
        if run.outcome is None:
            fail(run, refusal or INTERRUPTED, store=self.store, clock=self.clock)
