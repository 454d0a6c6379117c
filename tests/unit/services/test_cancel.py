"""Ending a run by hand, at every moment of its life."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant.contract import VerificationReport
from tensorant.domain.errors import Conflict, Invalid, NotFound, ProviderFault
from tensorant.domain.machines import Disposition, Goal, MachineState, Seen
from tensorant.domain.runs import Adapter, Outcome
from tensorant.services.cancel import Cancellations
from tensorant.services.conclusions import succeed
from tests.support.worlds import MEMBER, ORG, RUN, STRANGER, World, later, machine

NONCE = "n" * 32
ADAPTER = Adapter(key="k", etag='"e"', report=VerificationReport(sound=True))
LAUNCH, RELEASE = "run-1-launch-1", "run-1-release-2"
GONE: dict[str, Any] = {"goal": Goal.GONE, "disposition": Disposition.NOTHING_TO_KEEP}


@pytest.fixture
def runs(world: World) -> Cancellations:
    return Cancellations(world.store, world.workflow, world.clock)


def training(world: World) -> None:
    """Its machine runs, has introduced itself and has made a step."""
    world.rented(nonce=NONCE)
    world.trained()


def retained(world: World) -> None:
    """Ended in need of recovery, and its machine is stopped."""
    world.rented(Seen.STOPPED, nonce=NONCE, goal=Goal.STOPPED)
    world.trained()
    world.change_run(outcome=Outcome.NEEDS_RECOVERY, ended_at=later())


# -- before there is a machine -----------------------------------------------------------------------------


def test_a_draft_is_cancelled_and_starts_nothing(world: World, runs: Cancellations) -> None:
    world.drafted()

    ended = runs.cancel(MEMBER, ORG, RUN)

    assert ended == world.run
    assert (ended.outcome, ended.cancelled_at) == (Outcome.CANCELLED, world.clock.now())
    assert world.workflow.started == []
    assert world.told() == ["run_cancelled"]


@pytest.mark.parametrize("keep_output", [None, True, False])
def test_a_launch_in_flight_is_cancelled(
    world: World, runs: Cancellations, *, keep_output: bool | None
) -> None:
    world.claimed()
    world.store.wait_with(RUN, "token-1")

    ended = runs.cancel(MEMBER, ORG, RUN, keep_output=keep_output)

    assert ended.outcome is Outcome.CANCELLED
    # its recorded execution is started once more, in case nobody did: it finds the run ended
    assert world.workflow.started == [LAUNCH]
    assert world.workflow.woken == ["token-1"]


def test_an_ask_that_was_recorded_in_between_is_cancelled_with_the_run(
    world: World, runs: Cancellations
) -> None:
    world.claimed()
    world.store.before_next_commit(lambda: world.store.commit(world.run.asking(1), machine()))

    runs.cancel(MEMBER, ORG, RUN)

    assert world.run.outcome is Outcome.CANCELLED
    assert world.machine.goal is Goal.GONE


# -- with a machine ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seen", [Seen.NOTHING, Seen.PENDING, Seen.RUNNING])
def test_a_machine_that_has_not_spoken_has_nothing_to_keep(
    world: World, runs: Cancellations, seen: Seen
) -> None:
    if seen is Seen.NOTHING:
        world.asked()
    else:
        world.rented(seen)

    runs.cancel(MEMBER, ORG, RUN, keep_output=True)

    assert world.run.outcome is Outcome.CANCELLED
    assert (world.machine.goal, world.machine.disposition) == (Goal.GONE, Disposition.NOTHING_TO_KEEP)
    assert world.told() == ["run_cancelled", "goal_gone"]


def test_outcome_and_goal_are_written_together(world: World, runs: Cancellations) -> None:
    training(world)

    runs.cancel(MEMBER, ORG, RUN, keep_output=True)

    run, machine = world.store.commits[-1]
    assert (run.outcome, machine.goal) == (Outcome.NEEDS_RECOVERY, Goal.STOPPED)


def test_what_may_have_output_is_not_cancelled_without_a_word_on_it(
    world: World, runs: Cancellations
) -> None:
    training(world)

    with pytest.raises(Invalid) as caught:
        runs.cancel(MEMBER, ORG, RUN)

    assert caught.value.field == "keep_output"
    assert (world.run.outcome, world.machine.goal) == (None, Goal.RUN)
    assert world.workflow.started == []


def test_output_is_kept(world: World, runs: Cancellations) -> None:
    training(world)

    ended = runs.cancel(MEMBER, ORG, RUN, keep_output=True)

    assert ended.outcome is Outcome.NEEDS_RECOVERY
    assert ended.cancelled_at == world.clock.now()
    assert (world.machine.goal, world.machine.disposition) == (Goal.STOPPED, None)
    assert world.told() == ["run_cancelled", "goal_stopped"]
    assert [fact.source for fact in world.store.timeline(RUN)] == [MEMBER.subject, MEMBER.subject]


def test_output_is_given_up(world: World, runs: Cancellations) -> None:
    training(world)

    ended = runs.cancel(MEMBER, ORG, RUN, keep_output=False)

    assert ended.outcome is Outcome.CANCELLED
    assert (world.machine.goal, world.machine.disposition) == (Goal.GONE, Disposition.DISCARDED)


@pytest.mark.parametrize(
    ("keep_output", "outcome", "goal", "disposition"),
    [
        (None, Outcome.CANCELLED, Goal.GONE, Disposition.NOTHING_TO_KEEP),
        (True, Outcome.NEEDS_RECOVERY, Goal.STOPPED, None),
        (False, Outcome.CANCELLED, Goal.GONE, Disposition.DISCARDED),
    ],
)
def test_of_a_machine_in_contact_a_persons_word_counts(
    world: World,
    runs: Cancellations,
    keep_output: bool | None,  # noqa: FBT001 - a parameter of the table
    outcome: Outcome,
    goal: Goal,
    disposition: Disposition | None,
) -> None:
    world.rented(nonce=NONCE)

    runs.cancel(MEMBER, ORG, RUN, keep_output=keep_output)

    assert world.run.outcome is outcome
    assert (world.machine.goal, world.machine.disposition) == (goal, disposition)


def test_an_earlier_attempts_steps_do_not_count(world: World, runs: Cancellations) -> None:
    world.rented()
    world.trained(attempt=2)

    runs.cancel(MEMBER, ORG, RUN)

    assert world.machine.disposition is Disposition.NOTHING_TO_KEEP


def test_a_machine_that_is_closed_is_left_as_it_is(world: World, runs: Cancellations) -> None:
    world.asked(**GONE, confirmed_gone_at=later())
    before = world.machine

    runs.cancel(MEMBER, ORG, RUN)

    assert world.run.outcome is Outcome.CANCELLED
    assert world.machine == before


# -- once more, and too late -------------------------------------------------------------------------------


def test_cancelling_twice_is_cancelling_once(world: World, runs: Cancellations) -> None:
    training(world)
    first = runs.cancel(MEMBER, ORG, RUN, keep_output=False)
    told = world.told()

    for keep_output in (False, True, None):
        assert runs.cancel(MEMBER, ORG, RUN, keep_output=keep_output) == first
    assert world.told() == told
    assert world.workflow.executions == {LAUNCH}


def test_what_is_kept_may_be_given_up_afterwards(world: World, runs: Cancellations) -> None:
    training(world)
    kept = runs.cancel(MEMBER, ORG, RUN, keep_output=True)

    assert runs.cancel(MEMBER, ORG, RUN, keep_output=True) == kept

    ended = runs.cancel(MEMBER, ORG, RUN, keep_output=False)
    assert ended.outcome is Outcome.CANCELLED
    assert ended.cancelled_at == kept.cancelled_at
    assert world.machine.disposition is Disposition.DISCARDED


@pytest.mark.parametrize("keep_output", [None, True, False])
def test_a_success_is_not_cancelled(world: World, runs: Cancellations, *, keep_output: bool | None) -> None:
    training(world)
    succeed(world.run, world.machine, ADAPTER, store=world.store, clock=world.clock)

    with pytest.raises(Conflict) as caught:
        runs.cancel(MEMBER, ORG, RUN, keep_output=keep_output)

    assert caught.value.code == "run_ended"
    assert (world.run.outcome, world.machine.disposition) == (Outcome.SUCCEEDED, Disposition.VERIFIED)


def test_a_success_in_between_wins(world: World, runs: Cancellations) -> None:
    training(world)
    world.store.before_next_commit(
        lambda: succeed(world.run, world.machine, ADAPTER, store=world.store, clock=world.clock)
    )

    with pytest.raises(Conflict):
        runs.cancel(MEMBER, ORG, RUN, keep_output=False)

    assert world.run.outcome is Outcome.SUCCEEDED


def test_a_cancellation_that_was_recorded_and_not_carried_out_is_carried_out_by_the_next(
    world: World, runs: Cancellations
) -> None:
    world.claimed()
    world.workflow.trouble.append(ProviderFault("workflow_failed", "no answer"))
    with pytest.raises(ProviderFault):
        runs.cancel(MEMBER, ORG, RUN)

    runs.cancel(MEMBER, ORG, RUN)

    assert world.workflow.started == [LAUNCH]


def test_a_stranger_finds_no_run(world: World, runs: Cancellations) -> None:
    retained(world)

    for act in (runs.cancel, runs.discard, runs.retry_release):
        with pytest.raises(NotFound):
            act(STRANGER, ORG, RUN)


# -- discarding --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_cancelling", [False, True])
def test_output_that_was_kept_is_discarded_by_an_execution_of_its_own(
    world: World, runs: Cancellations, *, by_cancelling: bool
) -> None:
    retained(world)

    if by_cancelling:
        ended = runs.cancel(MEMBER, ORG, RUN, keep_output=False)
    else:
        ended = runs.discard(MEMBER, ORG, RUN)

    assert (ended.outcome, ended.execution_name) == (Outcome.CANCELLED, RELEASE)
    assert (world.machine.goal, world.machine.disposition) == (Goal.GONE, Disposition.DISCARDED)
    assert world.workflow.started == [RELEASE]
    assert world.told() == ["output_discarded", "goal_gone"]


def test_output_is_not_discarded_without_a_word_on_it(world: World, runs: Cancellations) -> None:
    retained(world)

    with pytest.raises(Invalid) as caught:
        runs.cancel(MEMBER, ORG, RUN)

    assert caught.value.field == "keep_output"
    assert world.machine.state is MachineState.RETAINED


@pytest.mark.parametrize("outcome", [None, Outcome.SUCCEEDED, Outcome.FAILED, Outcome.CANCELLED])
def test_where_nothing_is_kept_nothing_is_discarded(
    world: World, runs: Cancellations, outcome: Outcome | None
) -> None:
    world.rented()
    world.change_run(outcome=outcome)

    with pytest.raises(Conflict) as caught:
        runs.discard(MEMBER, ORG, RUN)

    assert caught.value.code == "nothing_to_discard"
    assert world.machine.goal is Goal.RUN


def test_discarding_twice_is_a_conflict(world: World, runs: Cancellations) -> None:
    retained(world)
    runs.discard(MEMBER, ORG, RUN)

    with pytest.raises(Conflict):
        runs.discard(MEMBER, ORG, RUN)
    assert world.workflow.started == [RELEASE]


# -- asking for a release again ----------------------------------------------------------------------------


def test_a_pending_release_is_asked_for_again_by_another_execution_each_time(
    world: World, runs: Cancellations
) -> None:
    world.rented(goal=Goal.GONE, disposition=Disposition.VERIFIED)
    world.change_run(outcome=Outcome.SUCCEEDED)

    for _ in range(2):
        runs.retry_release(MEMBER, ORG, RUN)

    assert world.workflow.started == ["run-1-release-2", "run-1-release-3"]
    assert world.run.outcome is Outcome.SUCCEEDED
    assert world.told() == ["release_asked_again", "release_asked_again"]


@pytest.mark.parametrize(
    ("seen", "changes"),
    [
        (Seen.RUNNING, {}),
        (Seen.STOPPED, {"goal": Goal.STOPPED}),
        (Seen.GONE, {"goal": Goal.GONE, "disposition": Disposition.VERIFIED}),
    ],
)
def test_where_no_release_is_pending_there_is_none_to_ask_for(
    world: World, runs: Cancellations, seen: Seen, changes: dict[str, Any]
) -> None:
    world.rented(seen, **changes)

    with pytest.raises(Conflict) as caught:
        runs.retry_release(MEMBER, ORG, RUN)

    assert caught.value.code == "no_release_pending"
    assert world.workflow.started == []


def test_a_run_without_a_machine_has_no_release(world: World, runs: Cancellations) -> None:
    world.claimed()

    with pytest.raises(Conflict):
        runs.retry_release(MEMBER, ORG, RUN)
