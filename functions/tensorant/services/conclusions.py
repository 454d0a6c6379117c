"""How a run ends: the outcome, written in the transaction that raises its machine's goal."""

from __future__ import annotations

from tensorant.domain.errors import FailureClass, ProviderError, Rejected
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


def failure_of(error: ProviderError | Rejected) -> Failure:
    """What an error means for a run that it ends."""
    if isinstance(error, ProviderError):
        return Failure.of(error)
    return Failure(
        failure_class=_class_of(error),
        code=error.code,
        message=error.message,
        mend=error.mend,
    )


def _class_of(error: Rejected) -> FailureClass:
    if error.code == "credentials_expire_early":
        return FailureClass.CREDENTIALS
    if error.field == "dataset_version_id":
        return FailureClass.DATASET
    return FailureClass.CONFIGURATION


def fail(run: Run, failure: Failure, *, store: Store, clock: Clock) -> None:
    """End a run that has no machine to care for."""
    now = clock.now()
    ended = run.ended(Outcome.FAILED, at=now, failure=failure)
    if ended is not run:
        store.commit(ended, facts=[run_fact(run, "run_failed", told(failure), at=now, source=SOURCE)])


def give_up(
    run: Run, machine: Machine, failure: Failure, *, store: Store, clock: Clock, worthless: bool = False
) -> Goal:
    """End a run's work on its machine; returns the machine's goal from now on.

    Where output may be left the machine is to be stopped and the run needs recovery; otherwise there is
    nothing to keep, the machine is to go and the run has failed. Once training has begun there may be
    output, whatever failed; `worthless` says that the output was seen and that there is nothing in it.
    """
    now = clock.now()
    existed = machine.instance_id is not None or machine.nonce is not None
    alive = existed and machine.seen not in {Seen.GONE, Seen.SHUTTING_DOWN}
    keep = alive and not worthless and (failure.may_leave_output or has_trained(machine, store=store))
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


def pass_over(run: Run, machine: Machine, failure: Failure, *, store: Store, clock: Clock) -> Goal:
    """Give up a machine that the provider could not run, and go on; returns the machine's goal from now on.

    It has left nothing. Only when it is confirmed gone does the run ask for another one.
    """
    now = clock.now()
    passed = machine.passed_over(failure)
    store.commit(
        run.refusing(machine.candidate),
        passed,
        facts=[
            machine_fact(machine, "machine_refused", told(failure), at=now, source="provider"),
            machine_fact(machine, "goal_gone", _why(passed), at=now, source=SOURCE),
        ],
    )
    return passed.goal


def has_started(machine: Machine, *, store: Store) -> bool:
    """Whether the machine's trainer is known to have been started."""
    progress = store.progress(machine.run_id)
    return progress is not None and progress.attempt == machine.attempt and progress.has_started


def has_trained(machine: Machine, *, store: Store) -> bool:
    """Whether the machine's trainer has reported a step or more."""
    progress = store.progress(machine.run_id)
    return progress is not None and progress.attempt == machine.attempt and progress.has_trained


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
