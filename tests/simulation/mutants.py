"""Deliberate bugs: each makes one part of a world wrongly, and the promises must catch it.

None patches a module: a service is subclassed or a port wrapped, as somebody could have written it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any, cast

from tensorant.contract import Heartbeat, HeartbeatReply, VerificationReport
from tensorant.domain.connections import Connection
from tensorant.domain.errors import (
    DOUBTFUL,
    Capacity,
    Conflict,
    Credentials,
    Permission,
)
from tensorant.domain.failures import Failure
from tensorant.domain.identity import Actor
from tensorant.domain.machines import Disposition, Goal, Machine, Observation, Seen
from tensorant.domain.runs import Adapter, Outcome, Run
from tensorant.domain.steps import Next, Step
from tensorant.ports import Compute, Entity, ObjectStore, Store
from tensorant.services.agent import Agents
from tensorant.services.asking import Asker
from tensorant.services.cancel import Cancellations
from tensorant.services.candidates import Choice
from tensorant.services.converge import Converger
from tensorant.services.launch import Validator
from tensorant.services.observe import Observer
from tensorant.services.quotes import current_quote
from tensorant.services.sweep import Sweep, SweepReport
from tensorant.services.verify import AdapterVerifier
from tests.simulation.services import Pieces, Ports


class Wrapped:
    """A port that is changed in one operation and handed through in all others."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def like(service: Any, kind: type[Any]) -> Any:
    """A service of another class with the same ports."""
    return kind(**vars(service))


# -- asking ------------------------------------------------------------------------------------------------


class AsksFirst(Asker):
    def _new(self, choice: Choice, connection: Connection) -> Machine:
        seen = self.computes.open(connection).ask(choice.machine, user_data=self._user_data(choice.machine))
        machine = super()._new(choice, connection)
        self.store.commit(machine.observed(seen, at=self.clock.now()))
        return self.store.machine(machine.run_id, machine.attempt)


class NoIntent(Pieces):
    """The provider is asked before anything is recorded."""

    def asker(self, ports: Ports) -> Asker:
        return cast("Asker", like(super().asker(ports), AsksFirst))


class RandomTokenCompute(Wrapped):
    _numbers = count()

    def ask(self, machine: Machine, *, user_data: str) -> Observation:
        candidate = replace(
            machine.candidate, subnet_id=f"{machine.candidate.subnet_id}{next(self._numbers)}"
        )
        return cast(
            "Observation", self._inner.ask(replace(machine, candidate=candidate), user_data=user_data)
        )


class RandomToken(Pieces):
    """Every ask has a token of its own."""

    def compute(self, compute: Compute) -> Compute:
        return cast("Compute", RandomTokenCompute(compute))


class DoubtIsNoCompute(Wrapped):
    def ask(self, machine: Machine, *, user_data: str) -> Observation:
        try:
            return cast("Observation", self._inner.ask(machine, user_data=user_data))
        except DOUBTFUL as error:
            raise Capacity(error.code, error.message) from error


class NextWhileInDoubt(Pieces):
    """No answer is taken for a refusal, and the next candidate is asked."""

    def compute(self, compute: Compute) -> Compute:
        return cast("Compute", DoubtIsNoCompute(compute))


class AnywhereCompute(Wrapped):
    def ask(self, machine: Machine, *, user_data: str) -> Observation:
        account_id = self._inner.check(None).account_id
        return cast(
            "Observation", self._inner.ask(replace(machine, account_id=account_id), user_data=user_data)
        )


class AsksInAnyAccount(Pieces):
    """A machine is made with whatever credentials the connection has by now."""

    def compute(self, compute: Compute) -> Compute:
        return cast("Compute", AnywhereCompute(compute))


class ForgetsAsks(Asker):
    def _again(self, run: Run, machine: Machine) -> Machine:
        return replace(super()._again(run, machine), asks=1)

    def _refused(self, step: Step, failure: Failure) -> Step:
        machine = self.store.machine(step.run_id, step.attempt)
        if machine.asks > 1 and machine.instance_id is None and not machine.closed:
            self.store.commit(replace(machine, asks=1))
        return super()._refused(step, failure)


class RetryBesideTimedOut(Pieces):
    """A refusal of a repeated ask is believed, though the first one may still be on its way."""

    def asker(self, ports: Ports) -> Asker:
        return cast("Asker", like(super().asker(ports), ForgetsAsks))


class AnyPrice(Validator):
    def _rechecked(self, run: Run) -> Any:
        connection = self.store.connection(run.organization_id, run.draft.connection_id)
        compute = self.computes.open(connection)
        return current_quote(
            run.draft, run.draft.instance_types[0], connection, compute=compute, clock=self.clock
        )


class PriceUnchecked(Pieces):
    """The price is not compared with the limit again at launch."""

    def validator(self, ports: Ports) -> Validator:
        return cast("Validator", like(super().validator(ports), AnyPrice))


# -- reading -----------------------------------------------------------------------------------------------


class ErrorIsGoneCompute(Wrapped):
    def observe(self, machine: Machine) -> Observation:
        try:
            return cast("Observation", self._inner.observe(machine))
        except (Credentials, Permission):
            return Observation(state=Seen.MISSING, account_id=machine.account_id)


class ErrorIsGone(Pieces):
    """A provider's refusal to answer is read as: no such machine."""

    def compute(self, compute: Compute) -> Compute:
        return cast("Compute", ErrorIsGoneCompute(compute))


class AnyAccountCompute(Wrapped):
    def observe(self, machine: Machine) -> Observation:
        seen: Observation = self._inner.observe(machine)
        return replace(seen, account_id=machine.account_id)


class ForeignAccountBelieved(Pieces):
    """Whoever reads, missing means gone."""

    def compute(self, compute: Compute) -> Compute:
        return cast("Compute", AnyAccountCompute(compute))


class MissingIsGoneCompute(Wrapped):
    def observe(self, machine: Machine) -> Observation:
        seen: Observation = self._inner.observe(machine)
        gone = seen.state is Seen.MISSING and seen.account_id == machine.account_id
        return replace(seen, state=Seen.GONE) if gone else seen


class NoLease(Pieces):
    """A machine that is not visible yet is called gone."""

    def compute(self, compute: Compute) -> Compute:
        return cast("Compute", MissingIsGoneCompute(compute))


class AssumesCompute(Wrapped):
    """One of these for each connection that is opened: it remembers nothing but its own last call."""

    _called = False

    def observe(self, machine: Machine) -> Observation:
        seen: Observation = self._inner.observe(machine)
        return replace(seen, state=Seen.GONE) if seen.state is Seen.SHUTTING_DOWN else seen


class ReleaseAssumed(Pieces):
    """A machine that is shutting down is called gone already."""

    def compute(self, compute: Compute) -> Compute:
        return cast("Compute", AssumesCompute(compute))


# -- deciding ----------------------------------------------------------------------------------------------


class Credulous(AdapterVerifier):
    def _judge(self, run: Run, attempt: int, _storage: ObjectStore) -> Adapter:
        return Adapter(key=run.prefix(attempt), etag="", report=VerificationReport(sound=True))


class ReleaseBeforeVerifying(Pieces):
    """Whatever was uploaded counts as verified."""

    def verifier(self, ports: Ports) -> AdapterVerifier:
        return cast("AdapterVerifier", like(super().verifier(ports), Credulous))


class Hasty(Observer):
    def _give_up(self, step: Step, failure: Failure) -> Step:
        run, machine = self.store.run(step.run_id), self.store.machine(step.run_id, step.attempt)
        if machine.goal is Goal.RUN:
            raised = machine.raised(Goal.GONE, Disposition.NOTHING_TO_KEEP)
            ended = run.ended(Outcome.FAILED, at=self.clock.now(), failure=failure)
            self.store.commit(ended, raised)
        return replace(step, next=Next.RELEASE)


class NothingIsKept(Pieces):
    """After any failure the machine goes, whatever is on its disk."""

    def observer(self, ports: Ports) -> Observer:
        return cast("Observer", like(super().observer(ports), Hasty))


class GoneAlready(Observer):
    def _give_up(self, step: Step, failure: Failure) -> Step:
        answer = super()._give_up(step, failure)
        machine = self.store.machine(step.run_id, step.attempt)
        if machine.refusal is not None and not machine.closed:
            self.store.commit(replace(machine, confirmed_gone_at=self.clock.now()))
        return answer


class NextBeforeGone(Pieces):
    """A machine that could not run is taken for gone while it is still shutting down, and the next one asked for."""

    def observer(self, ports: Ports) -> Observer:
        return cast("Observer", like(super().observer(ports), GoneAlready))


class Lowering(Converger):
    def _raise(self, run_id: str, attempt: int, goal: Goal) -> None:
        machine = self.store.machine(run_id, attempt)
        if goal is Goal.STOPPED and machine.goal is Goal.GONE and not machine.closed:
            self.store.commit(replace(machine, goal=goal))
        else:
            super()._raise(run_id, attempt, goal)


class GoalLowered(Pieces):
    """A late stop undoes a release."""

    def converger(self, ports: Ports) -> Converger:
        return cast("Converger", like(super().converger(ports), Lowering))


class Overwriting(Cancellations):
    def _cancel(self, actor: Actor, organization_id: str, run_id: str, keep_output: bool | None) -> Run:  # noqa: FBT001 - as its base
        run = self.store.run(run_id)
        if run.outcome is Outcome.SUCCEEDED or run.outcome is Outcome.FAILED:
            cancelled = replace(run, outcome=Outcome.CANCELLED)
            self.store.commit(cancelled)
            return replace(cancelled, version=run.version + 1)
        return super()._cancel(actor, organization_id, run_id, keep_output)


class OutcomeOverwritten(Pieces):
    """A cancel that comes late replaces the outcome."""

    def cancellations(self, ports: Ports) -> Cancellations:
        return cast("Cancellations", like(super().cancellations(ports), Overwriting))


class Encouraged(Agents):
    def heartbeat(self, machine: Machine, beat_: Heartbeat) -> HeartbeatReply:
        run = self.store.run(machine.run_id)
        with suppress(Conflict):
            self.store.commit(replace(run, deadline_at=self.clock.now() + run.draft.time_limit))
        return super().heartbeat(machine, beat_)


class HeartbeatIsProgress(Pieces):
    """A machine that speaks gets more time."""

    def agents(self, ports: Ports) -> Agents:
        return cast("Agents", like(super().agents(ports), Encouraged))


# -- the record, signals and the sweep ---------------------------------------------------------------------


class LastWriterStore(Wrapped):
    def commit(self, *changed: Entity, facts: Any = (), unchanged: Any = ()) -> None:
        try:
            self._inner.commit(*changed, facts=facts, unchanged=unchanged)
        except Conflict:
            self._inner.commit(*(self._forced(each) for each in changed))

    def _forced(self, entity: Entity) -> Entity:
        if isinstance(entity, Run):
            return replace(entity, version=self._inner.run(entity.id).version)
        if isinstance(entity, Machine) and entity.version:
            return replace(entity, version=self._inner.machine(entity.run_id, entity.attempt).version)
        return entity


class Unconditional(Pieces):
    """The last writer wins."""

    def store(self, store: Store) -> Store:
        return cast("Store", LastWriterStore(store))


class DeafStore(Wrapped):
    def last_signal(self, run_id: str) -> int:
        return 0


class EarlySignalDropped(Pieces):
    """A wait does not look whether it was signalled before it was registered."""

    def store(self, store: Store) -> Store:
        return cast("Store", DeafStore(store))


class Idle(Sweep):
    def sweep(self) -> SweepReport:
        return SweepReport()


class NoSweep(Pieces):
    """There is no second line."""

    def sweep(self, ports: Ports) -> Sweep:
        return cast("Sweep", like(super().sweep(ports), Idle))


MUTANTS: Mapping[str, Callable[[], Pieces]] = {
    kind.__name__: kind
    for kind in (
        NoIntent,
        RandomToken,
        NextWhileInDoubt,
        AsksInAnyAccount,
        RetryBesideTimedOut,
        PriceUnchecked,
        ErrorIsGone,
        ForeignAccountBelieved,
        NoLease,
        ReleaseAssumed,
        ReleaseBeforeVerifying,
        NothingIsKept,
        NextBeforeGone,
        GoalLowered,
        OutcomeOverwritten,
        HeartbeatIsProgress,
        Unconditional,
        EarlySignalDropped,
        NoSweep,
    )
}
