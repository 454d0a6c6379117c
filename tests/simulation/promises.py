"""The four promises, checked when faults have ceased and the sweep has run.

The provider's books, the storage and the execution history are the witnesses; our record is the accused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from tensorant.domain.machines import Goal, Machine, Seen
from tensorant.domain.runs import Outcome, Run
from tests.simulation.books import Rented
from tests.simulation.interpreter import Status
from tests.simulation.scheduler import Scheduler
from tests.simulation.uploads import Flavour
from tests.simulation.world import World

RECOVERY_SECONDS = 2 * 3600.0
LIMIT_SLACK_SECONDS = 1200.0
"""Boot before the switch is armed, and the stop's own time: the limit counts from the claim."""
PRICE_SLACK_SECONDS = 1200.0
"""A price that was checked holds this long: from the claim to the last ask of a patient provider."""
WORD_SECONDS = 120.0
"""How long the word of a first step may be under way: a cancel before it arrives finds nothing to keep."""
SIGNAL_SECONDS = 120.0
"""How long a wake may take: a function's time-out and its retry."""
CALM_SECONDS = 3600.0
"""How long after the end of all faults the control plane may need."""


@dataclass(frozen=True)
class Violation:
    promise: str
    what: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.what}"


def broken(world: World) -> list[Violation]:
    """Every promise that this schedule broke."""
    found: list[Violation] = []
    for promise, check in CHECKS.items():
        found += [Violation(promise, what) for what in check(world)]
    return found


# -- 1. No leak --------------------------------------------------------------------------------------------


def no_leak(world: World) -> Iterator[str]:
    for rented in world.books.ours:
        machine = _recorded(world, rented)
        if machine is None and rented.alive:
            yield f"{rented.id} lives and no record knows it"
        elif machine is not None and rented.alive:
            yield from _meant(world, rented, machine)
    yield from _strays(world)
    for run in world.runs:
        lives = sorted(world.books.of_run(run.id), key=lambda each: each.created_at)
        for earlier, later in pairwise(lives):
            if earlier.gone_at is None or earlier.gone_at > later.created_at:
                yield f"{earlier.id} and {later.id} of {run.id} lived at the same time"


def _meant(world: World, rented: Rented, machine: Machine) -> Iterator[str]:
    run = world.record.run(rented.run_id)
    if machine.closed:
        yield f"{rented.id} is {rented.state}, and recorded as {machine.state}"
    elif machine.instance_id != rented.id:
        yield f"{rented.id} lives, and the record has {machine.instance_id} in its place"
    elif machine.goal is not Goal.STOPPED:
        yield f"{rented.id} is {rented.state} with goal {machine.goal.name.lower()} ({machine.trouble})"
    elif rented.state is not Seen.STOPPED:
        yield f"{rented.id} was to be stopped and is {rented.state}"
    elif run.outcome is not Outcome.NEEDS_RECOVERY:
        yield f"{rented.id} is kept for a run that is {run.outcome}"
    elif machine.seen is not rented.state:
        yield f"{rented.id} is {rented.state}, and the record says {machine.seen}"


def _strays(world: World) -> Iterator[str]:
    """What is not ours is stopped in the end, so that it costs little, and never terminated."""
    for rented in world.books.machines:
        if rented.stray and any(
            each.what == "terminate" and each.by == "tensorant" for each in rented.orders
        ):
            yield f"{rented.id} is not ours and was terminated"
        if rented.stray and rented.state is Seen.RUNNING:
            yield f"{rented.id} is not ours, carries our tags, and still runs"


def _recorded(world: World, rented: Rented) -> Machine | None:
    machines = world.record.machines(rented.run_id)
    return next((each for each in machines if each.attempt == rented.attempt), None)


# -- 2. No lost adapter ------------------------------------------------------------------------------------


def no_lost_adapter(world: World) -> Iterator[str]:
    for rented in world.books.ours:
        ours = [each for each in rented.orders if each.what == "terminate" and each.by == "tensorant"]
        if not ours:
            continue
        if ours[0].note in {"None", "unrecorded"}:
            yield f"{rented.id} was terminated with no disposition stored"
        host = world.hosts.get(rented.id)
        taken_away = any(
            each.what in {"terminate", "vanish"} and each.by != "tensorant" for each in rented.orders
        )
        known = (
            host is not None and host.trained and _decided_at(world, rented) > host.trained_at + WORD_SECONDS
        )
        worthless = host is not None and host.uploaded is Flavour.UNTRAINED
        if known and ours[0].note == "nothing_to_keep" and not (taken_away or worthless):
            yield f"{rented.id} had trained and was terminated with nothing to keep"
        if ours[0].note == "discarded" and rented.run_id not in world.given_up:
            yield f"{rented.id} was discarded, and nobody had asked for it"
        if ours[0].note == "verified" and (rented.run_id, rented.attempt) not in world.sound:
            yield f"{rented.id} was released as verified, and its storage has no sound archive"
    for run in world.runs:
        stored = world.record.run(run.id)
        if stored.outcome is Outcome.SUCCEEDED and run.id not in {run_id for run_id, _ in world.sound}:
            yield f"{run.id} has succeeded without a sound archive"


def _decided_at(world: World, rented: Rented) -> float:
    """When the machine's goal became gone."""
    versions = world.record.versions(rented.run_id, rented.attempt)
    return next((at for at, machine in versions if machine.goal is Goal.GONE), 0.0)


# -- 3. No overspend ---------------------------------------------------------------------------------------


def no_overspend(world: World) -> Iterator[str]:
    for run in world.runs:
        stored = world.record.run(run.id)
        limit = stored.draft.time_limit_minutes * 60.0
        for rented in world.books.of_run(run.id):
            first = rented.periods[0]
            until = rented.created_at + limit + LIMIT_SLACK_SECONDS
            host = world.hosts.get(rented.id)
            if host is None or not host.switch_works:
                until = max(until, world.schedule.faults_end + CALM_SECONDS)
            if (first.end if first.end is not None else world.scheduler.now) > until:
                yield f"{rented.id} ran {rented.ran(world.scheduler.now):.0f} s, the limit is {limit:.0f} s"
            yield from _restarts(world, rented)
            yield from _price(world, stored, rented)


def _restarts(world: World, rented: Rented) -> Iterator[str]:
    for period in rented.periods[1:]:
        end = period.end if period.end is not None else world.scheduler.now
        host = world.hosts.get(rented.id)
        until = period.start + RECOVERY_SECONDS + LIMIT_SLACK_SECONDS
        if host is None or not host.switch_works:
            until = max(until, world.schedule.faults_end + CALM_SECONDS)
        if end > until:
            yield f"{rented.id} was restarted and ran {end - period.start:.0f} s"


def _price(world: World, run: Run, rented: Rented) -> Iterator[str]:
    limit = run.draft.price_limit_usd_per_hour
    raised_at = world.price_raised_at
    if rented.usd_per_hour > limit and (
        raised_at is None or raised_at + PRICE_SLACK_SECONDS < rented.created_at
    ):
        yield f"{rented.id} costs ${rented.usd_per_hour}, above the limit of ${limit}"


# -- 4. Three separate facts -------------------------------------------------------------------------------


def separate_facts(world: World) -> Iterator[str]:
    yield from _outcomes(world)
    yield from _goals(world)
    for run in world.runs:
        stored = world.record.run(run.id)
        if stored.launched_at is not None and stored.outcome is None:
            yield f"{run.id} was launched and has no outcome"
        for machine in world.record.machines(run.id):
            yield from _machine_facts(world, machine)
    for name, execution in world.interpreter.executions.items():
        if execution.status is Status.RUNNING:
            yield f"{name} still runs, in {execution.state}"


def _outcomes(world: World) -> Iterator[str]:
    last: dict[str, Run] = {}
    for _, entity in world.record.written:
        if isinstance(entity, Run):
            before = last.get(entity.id)
            if before and before.outcome and before.outcome.final and entity.outcome is not before.outcome:
                yield f"{entity.id} was {before.outcome} and became {entity.outcome}"
            last[entity.id] = entity


def _goals(world: World) -> Iterator[str]:
    last: dict[tuple[str, int], Machine] = {}
    for _, entity in world.record.written:
        if isinstance(entity, Machine):
            before = last.get((entity.run_id, entity.attempt))
            if before and entity.goal < before.goal:
                yield f"the goal of {entity.run_id}#{entity.attempt} was lowered"
            last[entity.run_id, entity.attempt] = entity


def _machine_facts(world: World, machine: Machine) -> Iterator[str]:
    name = f"{machine.run_id}#{machine.attempt}"
    rented = _made_for(world, machine)
    if not machine.closed:
        return
    if rented is None:
        if machine.instance_id is not None:
            yield f"{name} has {machine.instance_id}, which nobody made"
        return
    if rented.gone_at is None:
        yield f"{name} is recorded as {machine.state}, and {rented.id} is {rented.state}"
        return
    closed_at = Scheduler.seconds_at(machine.confirmed_gone_at) if machine.confirmed_gone_at else 0.0
    if closed_at + world.schedule.skew_seconds + 1 < rented.gone_at:
        yield f"{name} was called gone {rented.gone_at - closed_at:.0f} s before it was"
    if machine.ran_until is not None and machine.started_at is not None:
        yield from _cost_facts(world, machine, rented)


def _made_for(world: World, machine: Machine) -> Rented | None:
    """By its id; without one, by its token."""
    made = world.books.of_run(machine.run_id)
    if machine.instance_id is not None:
        return next((each for each in made if each.id == machine.instance_id), None)
    return next((each for each in reversed(made) if each.token == machine.client_token), None)


def _cost_facts(world: World, machine: Machine, rented: Rented) -> Iterator[str]:
    """What is counted as running is never less than the books say of the periods it knows."""
    starts = [Scheduler.moment_at(period.start) for period in rented.periods]
    if machine.started_at not in starts:
        yield f"{rented.id} is recorded as started at {machine.started_at}, which the books don't know"
        return
    end = rented.periods[starts.index(machine.started_at)].end
    slack = timedelta(seconds=world.schedule.skew_seconds + 1)
    if end is not None and machine.ran_until and machine.ran_until + slack < Scheduler.moment_at(end):
        yield f"{rented.id} is recorded as ended before it was"


# -- 5. Nothing waits for what has been said ---------------------------------------------------------------


def no_early_signal_lost(world: World) -> Iterator[str]:
    """A wait that was registered after a signal which nobody had read ends at once."""
    for execution in world.interpreter.executions.values():
        for wait in execution.waits:
            registered = world.record.registered.get(wait.token)
            ended = wait.ended if wait.ended is not None else world.scheduler.now
            if registered is None or ended < registered + SIGNAL_SECONDS:
                continue
            for at, run_id, number in world.record.signalled:
                early = at < registered and number > wait.given["signal"]
                if early and run_id == wait.given["run_id"]:
                    yield f"{execution.name} slept {ended - registered:.0f} s on signal {number}"
                    break


CHECKS = {
    "no leak": no_leak,
    "no lost adapter": no_lost_adapter,
    "no overspend": no_overspend,
    "separate facts": separate_facts,
    "waking": no_early_signal_lost,
}
