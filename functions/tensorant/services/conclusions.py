"""How a run ends: the outcome, written in the transaction that raises its machine's goal."""

from __future__ import annotations

from tensorant.domain.errors import FailureClass
from tensorant.domain.failures import Failure
from tensorant.domain.machines import Disposition, Goal, Machine, Seen
from tensorant.domain.runs import Adapter, Outcome, Run
from tensorant.ports import Clock, Store
from tensorant.services.facts import machine_fact, run_fact, told

SOURCE = "tensorant"

INTERRUPTED = Failure(
    failure_class=FailureClass.PROVIDER_FAULT,
    code="workflow_interrupted",
    message="The run's workflow was interrupted before its adapter was verified.",
    mend="See the execution in the Step Functions console; recover or discard the run's output.",
)


def fail(run: Run, failure: Failure, *, store: Store, clock: Clock) -> None:
    """End a run that has no machine to care for."""
    now = clock.now()
    ended = run.ended(Outcome.FAILED, at=now, failure=failure)
    if ended is not run:
        store.commit(ended, facts=[run_fact(run, "run_failed", told(failure), at=now, source=SOURCE)])


def give_up(run: Run, machine: Machine, failure: Failure, *, store: Store, clock: Clock) -> Goal:
    """End a run's work on its machine; returns the machine's goal from now on.

    Where output may be left the machine is to be stopped and the run needs recovery; otherwise there is
    nothing to keep, the machine is to go and the run has failed.
    """
    now = clock.now()
    keep = failure.may_leave_output and machine.seen not in {Seen.GONE, Seen.SHUTTING_DOWN}
    outcome = Outcome.NEEDS_RECOVERY if keep else Outcome.FAILED
    raised = machine.raised(Goal.STOPPED) if keep else machine.raised(Goal.GONE, Disposition.NOTHING_TO_KEEP)
    store.commit(
        run.ended(outcome, at=now, failure=failure),
        raised,
        facts=[
            run_fact(run, f"run_{outcome}", told(failure), at=now, source=SOURCE),
            machine_fact(machine, f"goal_{raised.goal.name.lower()}", _why(raised), at=now, source=SOURCE),
        ],
    )
    return raised.goal


def succeed(run: Run, machine: Machine, adapter: Adapter, *, store: Store, clock: Clock) -> None:
    """The adapter is verified in storage: the run has succeeded and its machine may go."""
    now = clock.now()
    raised = machine.raised(Goal.GONE, Disposition.VERIFIED)
    store.commit(
        run.succeeded(adapter, at=now),
        raised,
        facts=[
            run_fact(run, "run_succeeded", f"Adapter verified: {adapter.key}", at=now, source=SOURCE),
            machine_fact(machine, "goal_gone", _why(raised), at=now, source=SOURCE),
        ],
    )


def _why(machine: Machine) -> str:
    return f"Disposition: {machine.disposition}." if machine.disposition else "Its disk is kept."
