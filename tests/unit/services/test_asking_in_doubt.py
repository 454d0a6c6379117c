"""Questions whose answer was doubtful: refused later, answered too late, or never settled by an answer at all."""

from __future__ import annotations

import pytest

from tensorant.domain.connections import ConnectionStatus
from tensorant.domain.errors import (
    Capacity,
    Configuration,
    Credentials,
    FailureClass,
    NotYetConfirmed,
    ProviderError,
    ProviderFault,
    Quota,
)
from tensorant.domain.machines import Disposition, Goal, MachineState, Seen
from tensorant.domain.runs import Outcome
from tensorant.domain.steps import Next
from tensorant.services.asking import Asker
from tensorant.services.cancel import Cancellations
from tensorant.services.candidates import Choices
from tensorant.services.converge import Converger
from tests.support.worlds import MEMBER, ORG, RUN, SECOND_SUBNET, World, aws_connection, later, step

NO_ANSWER = ProviderFault("no_answer", "AWS did not answer.")
NONE_HERE = Capacity("InsufficientInstanceCapacity", "None in this zone.", mend="Try another.")
NO_QUOTA = Quota("VcpuLimitExceeded", "0 of 4 vCPUs.", mend="Ask for more.")
REVOKED = Credentials("credentials_missing", "They are not stored.", mend="Save them.")


@pytest.fixture
def asker(world: World) -> Asker:
    choices = Choices(world.clock, "https://api.example/", "dep-1")
    return Asker(world.store, world.computes, world.mint, world.clock, choices)


@pytest.fixture
def converger(world: World) -> Converger:
    return Converger(world.store, world.computes, world.clock)


def left_open(world: World, asker: Asker, *, made: bool) -> None:
    """The first question got no answer; whether a machine was made only the provider knows."""
    world.claimed()
    world.compute.fail_next("ask", NO_ANSWER, acting=made)
    with pytest.raises(ProviderFault):
        asker.ask(step())


@pytest.mark.parametrize("refusal", [NONE_HERE, NO_QUOTA, REVOKED])
def test_a_refusal_says_nothing_of_a_machine_that_speaks(
    world: World, asker: Asker, refusal: ProviderError
) -> None:
    """The first question made it, and it may train already: it is waited for, and found by its token."""
    left_open(world, asker, made=True)
    world.change_machine(nonce="spoken")
    world.compute.fail_next("ask", refusal)

    assert asker.ask(step()).next is Next.AWAIT
    assert (world.machine.goal, world.run.outcome) == (Goal.RUN, None)


def test_how_often_a_question_was_put_is_counted(world: World, asker: Asker) -> None:
    left_open(world, asker, made=False)
    assert world.machine.asks == 1

    asker.ask(step())

    assert world.machine.asks == 2


# -- the first and only answer -----------------------------------------------------------------------------


def test_a_refusal_of_the_only_question_and_the_runs_end_are_written_together(
    world: World, asker: Asker
) -> None:
    world.claimed()
    world.compute.fail_next("ask", NO_QUOTA)

    assert asker.ask(step()).next is Next.END

    run, machine = world.store.commits[-1]
    assert (run.outcome, run.failure.code) == (Outcome.FAILED, "VcpuLimitExceeded")
    assert machine.state is MachineState.NEVER_EXISTED
    assert world.told() == ["machine_asked", "machine_refused", "run_failed"]


def test_want_of_capacity_leaves_the_run_under_way(world: World, asker: Asker) -> None:
    world.claimed()
    world.compute.fail_next("ask", NONE_HERE)

    assert asker.ask(step()).next is Next.LAUNCH

    assert world.run.under_way
    assert world.run.refused == (world.machine.candidate,)
    assert world.told() == ["machine_asked", "machine_refused"]


# -- a refusal of a repeated question ----------------------------------------------------------------------


@pytest.mark.parametrize("error", [NONE_HERE, NO_QUOTA])
def test_a_refusal_of_a_repeated_question_says_nothing_of_the_one_before(
    world: World, asker: Asker, error: ProviderError
) -> None:
    left_open(world, asker, made=True)
    world.compute.fail_next("ask", error)

    answer = asker.ask(step())

    assert (answer.next, answer.attempt) == (Next.RELEASE, 1)
    assert not world.machine.closed
    assert (world.machine.goal, world.machine.disposition) == (Goal.GONE, Disposition.NOTHING_TO_KEEP)
    assert world.machine.refusal is not None
    assert world.machine.refusal.code == error.code


@pytest.mark.parametrize(
    ("error", "outcome"), [(NONE_HERE, None), (NO_QUOTA, Outcome.FAILED)], ids=["capacity", "quota"]
)
def test_only_want_of_capacity_lets_the_run_go_on_after_it(
    world: World, asker: Asker, error: ProviderError, outcome: Outcome | None
) -> None:
    left_open(world, asker, made=False)
    world.compute.fail_next("ask", error)

    asker.ask(step())

    assert world.run.outcome is outcome


def test_what_the_first_question_made_is_found_by_its_token_and_released(
    world: World, asker: Asker, converger: Converger
) -> None:
    left_open(world, asker, made=True)
    world.compute.fail_next("ask", NONE_HERE)
    (instance_id,) = world.compute.instances

    refused = asker.ask(step())
    converger.toward(refused, Goal.GONE, confirm=False)
    world.compute.let_time_pass()
    released = converger.toward(refused, Goal.GONE, confirm=True)
    answer = asker.ask(released)

    assert released.next is Next.LAUNCH
    assert world.store.machine(RUN, 1).instance_id == instance_id
    assert world.store.machine(RUN, 1).state is MachineState.RELEASED
    assert (answer.next, answer.attempt) == (Next.AWAIT, 2)
    assert world.machine.candidate.subnet_id == SECOND_SUBNET


def test_what_was_never_made_is_settled_by_the_lease_before_the_next_is_asked(
    world: World, asker: Asker, converger: Converger
) -> None:
    left_open(world, asker, made=False)
    world.clock.forward(minutes=1)  # the lease runs from the second question: until 12:06
    world.compute.fail_next("ask", NONE_HERE)
    refused = asker.ask(step())

    world.clock.at = later(minutes=5, seconds=59)
    with pytest.raises(NotYetConfirmed):
        converger.toward(refused, Goal.GONE, confirm=True)
    world.clock.at = later(minutes=6)
    released = converger.toward(refused, Goal.GONE, confirm=True)

    assert released.next is Next.LAUNCH
    assert world.machine.state is MachineState.NEVER_EXISTED


def test_while_an_earlier_machine_is_open_no_other_is_asked_for(world: World, asker: Asker) -> None:
    left_open(world, asker, made=True)
    world.compute.fail_next("ask", NONE_HERE)
    refused = asker.ask(step())

    assert asker.ask(refused).next is Next.RELEASE
    assert len(world.store.machines(RUN)) == 1
    assert len(world.compute.asked("ask")) == 2


# -- answers that come too late ----------------------------------------------------------------------------


def test_a_machine_of_a_run_that_was_cancelled_meanwhile_goes_at_once(world: World, asker: Asker) -> None:
    world.claimed()
    runs = Cancellations(world.store, world.workflow, world.clock)
    world.compute.during_next("ask", lambda: runs.cancel(MEMBER, ORG, RUN))

    answer = asker.ask(step())

    assert (answer.next, answer.attempt) == (Next.RELEASE, 1)
    assert world.run.outcome is Outcome.CANCELLED
    assert world.compute.asked("terminate") == [world.machine.instance_id]


@pytest.mark.parametrize("error", [NONE_HERE, NO_QUOTA])
def test_a_refusal_of_a_run_that_was_cancelled_meanwhile_changes_nothing(
    world: World, asker: Asker, error: ProviderError
) -> None:
    world.claimed()
    runs = Cancellations(world.store, world.workflow, world.clock)
    world.compute.during_next("ask", lambda: runs.cancel(MEMBER, ORG, RUN))
    world.compute.fail_next("ask", error)

    answer = asker.ask(step())

    assert (answer.next, answer.attempt) == (Next.RELEASE, 1)
    assert (world.run.outcome, world.run.failure) == (Outcome.CANCELLED, None)
    assert (world.machine.goal, world.machine.refusal) == (Goal.GONE, None)


def test_an_intent_is_not_stored_for_a_run_that_has_ended_meanwhile(world: World, asker: Asker) -> None:
    world.claimed()
    world.store.before_next_commit(lambda: world.change_run(outcome=Outcome.CANCELLED))

    answer = asker.ask(step())

    assert (answer.next, answer.attempt) == (Next.STOP, 0)
    assert world.store.machines(RUN) == []
    assert world.compute.asked("ask") == []


def test_a_question_is_not_put_again_for_a_run_that_has_ended_meanwhile(world: World, asker: Asker) -> None:
    left_open(world, asker, made=False)
    runs = Cancellations(world.store, world.workflow, world.clock)
    world.store.before_next_commit(lambda: runs.cancel(MEMBER, ORG, RUN))

    answer = asker.ask(step())

    assert answer.next is Next.RELEASE
    assert world.machine.asks == 1
    assert len(world.compute.asked("ask")) == 1


# -- trouble before the question could be put again --------------------------------------------------------


def test_an_open_question_is_given_up_with_its_run(world: World, asker: Asker, converger: Converger) -> None:
    left_open(world, asker, made=True)
    world.computes.trouble = REVOKED

    answer = asker.ask(step())

    assert (answer.next, answer.attempt) == (Next.RELEASE, 1)
    assert world.run.failure is not None
    assert (world.run.outcome, world.run.failure.failure_class) == (Outcome.FAILED, FailureClass.CREDENTIALS)
    assert world.machine.goal is Goal.GONE

    world.computes.trouble = None
    converger.toward(answer, Goal.GONE, confirm=False)
    assert [each.state for each in world.compute.instances.values()] == [Seen.SHUTTING_DOWN]


def test_a_connection_that_failed_its_check_does_not_keep_a_question_open(world: World, asker: Asker) -> None:
    left_open(world, asker, made=True)
    world.store.commit(aws_connection(status=ConnectionStatus.FAILED, version=1))

    assert asker.ask(step()).next is Next.AWAIT
    assert len(world.compute.instances) == 1


@pytest.mark.parametrize(
    ("error", "failure_class"),
    [
        (REVOKED, FailureClass.CREDENTIALS),
        (Configuration("not_aws", "No.", mend="Choose another."), FailureClass.CONFIGURATION),
    ],
)
def test_a_connection_that_cannot_be_opened_ends_the_run_with_its_own_class(
    world: World, asker: Asker, error: ProviderError, failure_class: FailureClass
) -> None:
    world.claimed()
    world.computes.trouble = error

    assert asker.ask(step()).next is Next.END
    assert world.run.failure is not None
    assert world.run.failure.failure_class is failure_class
    assert world.store.machines(RUN) == []


def test_a_connection_that_is_not_ready_ends_the_run(world: World, asker: Asker) -> None:
    world.claimed()
    world.store.commit(aws_connection(status=ConnectionStatus.FAILED, version=1))

    assert asker.ask(step()).next is Next.END
    assert world.run.failure is not None
    assert (world.run.failure.failure_class, world.run.failure.code) == (
        FailureClass.CONFIGURATION,
        "connection_not_ready",
    )
