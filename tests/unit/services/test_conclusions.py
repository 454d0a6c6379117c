"""How a run ends: outcome and goal in one transaction."""

from __future__ import annotations

import pytest

from tensorant.contract import VerificationReport
from tensorant.domain.errors import Conflict, FailureClass, ProviderError, Quota, Rejected
from tensorant.domain.failures import Failure
from tensorant.domain.machines import Disposition, Goal, Seen
from tensorant.domain.runs import Adapter, Outcome
from tensorant.services.conclusions import fail, failure_of, give_up, pass_over, succeed
from tests.support.worlds import World

ADAPTER = Adapter(key="runs/run-1/attempt-1/adapter.zip", etag='"e"', report=VerificationReport(sound=True))


def failure(failure_class: FailureClass) -> Failure:
    return Failure(failure_class=failure_class, code="some", message="It happened.", mend="Mend it.")


def give(world: World, failure_class: FailureClass) -> Goal:
    return give_up(world.run, world.machine, failure(failure_class), store=world.store, clock=world.clock)


@pytest.mark.parametrize(
    "failure_class", [FailureClass.TRAINING, FailureClass.DEADLINE, FailureClass.STORAGE, FailureClass.LOST]
)
def test_where_output_may_be_left_the_machine_is_kept(world: World, failure_class: FailureClass) -> None:
    world.rented()

    assert give(world, failure_class) is Goal.STOPPED
    assert world.run.outcome is Outcome.NEEDS_RECOVERY
    assert world.machine.disposition is None


@pytest.mark.parametrize("failure_class", [FailureClass.BAD_HOST, FailureClass.DATASET, FailureClass.PRICE])
def test_where_there_is_nothing_to_keep_the_machine_goes(world: World, failure_class: FailureClass) -> None:
    world.rented()

    assert give(world, failure_class) is Goal.GONE
    assert world.run.outcome is Outcome.FAILED
    assert world.machine.disposition is Disposition.NOTHING_TO_KEEP


@pytest.mark.parametrize("seen", [Seen.GONE, Seen.SHUTTING_DOWN])
def test_a_machine_that_is_gone_leaves_nothing_to_recover(world: World, seen: Seen) -> None:
    world.rented(seen)

    assert give(world, FailureClass.LOST) is Goal.GONE
    assert world.run.outcome is Outcome.FAILED


@pytest.mark.parametrize("failure_class", FailureClass)
def test_once_training_has_begun_output_is_kept_whatever_failed(
    world: World, failure_class: FailureClass
) -> None:
    world.rented()
    world.trained()

    assert give(world, failure_class) is Goal.STOPPED
    assert world.run.outcome is Outcome.NEEDS_RECOVERY


def test_another_attempts_training_does_not_count(world: World) -> None:
    world.rented()
    world.trained(attempt=2)

    assert give(world, FailureClass.BAD_HOST) is Goal.GONE


@pytest.mark.parametrize("failure_class", FailureClass)
def test_a_machine_that_never_got_an_id_nor_spoke_leaves_nothing(
    world: World, failure_class: FailureClass
) -> None:
    world.asked()

    assert give(world, failure_class) is Goal.GONE
    assert world.run.outcome is Outcome.FAILED
    assert world.machine.disposition is Disposition.NOTHING_TO_KEEP


def test_a_machine_that_spoke_exists_though_its_id_was_never_told(world: World) -> None:
    world.asked(nonce="n" * 32)

    assert give(world, FailureClass.DEADLINE) is Goal.STOPPED
    assert world.run.outcome is Outcome.NEEDS_RECOVERY


@pytest.mark.parametrize("seen", [Seen.GONE, Seen.SHUTTING_DOWN])
def test_what_a_machine_had_trained_went_with_it(world: World, seen: Seen) -> None:
    world.rented(seen)
    world.trained()

    assert give(world, FailureClass.TRAINING) is Goal.GONE


def test_a_machine_that_could_not_run_goes_and_the_run_goes_on(world: World) -> None:
    rented = world.rented(Seen.SHUTTING_DOWN)
    no_capacity = failure(FailureClass.CAPACITY)

    assert pass_over(world.run, world.machine, no_capacity, store=world.store, clock=world.clock) is Goal.GONE

    assert (world.run.outcome, world.run.refused) == (None, (rented.candidate,))
    assert (world.machine.disposition, world.machine.refusal) == (Disposition.NOTHING_TO_KEEP, no_capacity)
    assert not world.machine.closed
    assert world.told() == ["machine_refused", "goal_gone"]


def test_outcome_and_goal_are_written_together(world: World) -> None:
    world.rented()

    give(world, FailureClass.TRAINING)

    run, machine = world.store.commits[-1]
    assert run.outcome is Outcome.NEEDS_RECOVERY
    assert machine.goal is Goal.STOPPED
    assert world.told() == ["run_needs_recovery", "goal_stopped"]


def test_neither_is_written_if_one_was_changed_meanwhile(world: World) -> None:
    world.rented()
    run, machine = world.run, world.machine
    world.change_machine(reason="somebody wrote")

    with pytest.raises(Conflict):
        give_up(run, machine, failure(FailureClass.TRAINING), store=world.store, clock=world.clock)

    assert world.run.outcome is None
    assert world.machine.goal is Goal.RUN
    assert world.told() == []


def test_success_and_the_right_to_go_are_written_together(world: World) -> None:
    world.rented()

    succeed(world.run, world.machine, ADAPTER, store=world.store, clock=world.clock)

    run, machine = world.store.commits[-1]
    assert (run.outcome, run.adapter) == (Outcome.SUCCEEDED, ADAPTER)
    assert (machine.goal, machine.disposition) == (Goal.GONE, Disposition.VERIFIED)
    assert world.told() == ["run_succeeded", "goal_gone"]


def test_a_run_fails_once(world: World) -> None:
    world.claimed()

    for failure_class in (FailureClass.QUOTA, FailureClass.CAPACITY):
        fail(world.run, failure(failure_class), store=world.store, clock=world.clock)

    assert world.run.failure is not None
    assert world.run.failure.failure_class is FailureClass.QUOTA
    assert world.told() == ["run_failed"]
    assert world.store.timeline("run-1")[0].message == "It happened. Mend it."


@pytest.mark.parametrize(
    ("error", "failure_class", "code"),
    [
        (Quota("VcpuLimitExceeded", "None left."), FailureClass.QUOTA, "VcpuLimitExceeded"),
        (Conflict("connection_not_ready", "It failed."), FailureClass.CONFIGURATION, "connection_not_ready"),
        (Conflict("credentials_expire_early", "Soon."), FailureClass.CREDENTIALS, "credentials_expire_early"),
        (
            Conflict("dataset_not_valid", "It is not.", field="dataset_version_id"),
            FailureClass.DATASET,
            "dataset_not_valid",
        ),
    ],
)
def test_an_error_ends_a_run_with_its_own_class(
    error: ProviderError | Rejected, failure_class: FailureClass, code: str
) -> None:
    found = failure_of(error)

    assert (found.failure_class, found.code, found.message) == (failure_class, code, error.message)


def test_a_final_outcome_is_kept_while_the_machine_is_stopped(world: World) -> None:
    world.rented()
    world.change_run(outcome=Outcome.CANCELLED)

    give(world, FailureClass.TRAINING)

    assert world.run.outcome is Outcome.CANCELLED
    assert world.machine.goal is Goal.STOPPED
