"""Executions that ended badly: what may be kept is kept, and nothing is left running."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant.domain.errors import FailureClass, ProviderFault
from tensorant.domain.machines import Disposition, Goal, MachineState, Seen
from tensorant.domain.runs import Outcome
from tensorant.services.execution_ended import ExecutionEnds
from tests.support.worlds import RUN, World, later

GONE: dict[str, Any] = {"goal": Goal.GONE, "disposition": Disposition.VERIFIED}


@pytest.fixture
def ends(world: World) -> ExecutionEnds:
    return ExecutionEnds(world.store, world.computes, world.clock)


@pytest.mark.parametrize("refused", [False, True])
def test_without_a_machine_the_run_has_failed(world: World, ends: ExecutionEnds, *, refused: bool) -> None:
    if refused:
        world.asked(goal=Goal.GONE, disposition=Disposition.NOTHING_TO_KEEP, confirmed_gone_at=later())
    else:
        world.claimed()

    ends.ended(RUN)

    assert world.run.outcome is Outcome.FAILED
    assert world.run.failure is not None
    assert (world.run.failure.failure_class, world.run.failure.code) == (
        FailureClass.PROVIDER_FAULT,
        "workflow_interrupted",
    )
    assert world.compute.calls == []


def test_a_running_machine_is_stopped_and_kept(world: World, ends: ExecutionEnds) -> None:
    rented = world.rented()

    ends.ended(RUN)

    assert world.run.outcome is Outcome.NEEDS_RECOVERY
    assert world.machine.state is MachineState.STOPPING
    assert world.compute.calls == [("observe", rented.instance_id), ("stop", rented.instance_id)]


def test_an_ask_without_an_answer_is_looked_up_and_released(world: World, ends: ExecutionEnds) -> None:
    asked = world.asked()
    made = world.compute.ask(asked, user_data="")
    world.compute.calls.clear()

    ends.ended(RUN)

    assert world.run.outcome is Outcome.FAILED
    assert (world.machine.goal, world.machine.disposition) == (Goal.GONE, Disposition.NOTHING_TO_KEEP)
    assert world.compute.calls == [("observe", asked.client_token), ("terminate", made.instance_id)]


def test_an_ask_that_made_nothing_is_closed_after_its_lease(world: World, ends: ExecutionEnds) -> None:
    world.asked()
    world.clock.forward(minutes=5)

    ends.ended(RUN)

    assert world.run.outcome is Outcome.FAILED
    assert world.machine.state is MachineState.NEVER_EXISTED


def test_what_was_decided_stays_and_is_carried_on(world: World, ends: ExecutionEnds) -> None:
    rented = world.rented(**GONE)
    world.change_run(outcome=Outcome.SUCCEEDED)

    ends.ended(RUN)

    assert world.run.outcome is Outcome.SUCCEEDED
    assert world.compute.asked("terminate") == [rented.instance_id]


@pytest.mark.parametrize(("seen", "changes"), [(Seen.STOPPED, {"goal": Goal.STOPPED}), (Seen.GONE, GONE)])
def test_a_machine_at_its_goal_is_left_alone(
    world: World, ends: ExecutionEnds, seen: Seen, changes: dict[str, Any]
) -> None:
    world.rented(seen, **changes)
    world.change_run(outcome=Outcome.NEEDS_RECOVERY)

    ends.ended(RUN)

    assert world.compute.calls == []


def test_the_same_news_twice_changes_nothing_more(world: World, ends: ExecutionEnds) -> None:
    world.rented()
    ends.ended(RUN)
    run = world.run

    ends.ended(RUN)

    assert world.run == run
    assert len(world.compute.asked("stop")) == 1


def test_trouble_is_raised_after_the_run_was_given_up(world: World, ends: ExecutionEnds) -> None:
    world.rented()
    world.compute.fail_next("stop", ProviderFault("no_answer", "None."))

    with pytest.raises(ProviderFault):
        ends.ended(RUN)

    assert world.run.outcome is Outcome.NEEDS_RECOVERY
    ends.ended(RUN)
    assert len(world.compute.asked("stop")) == 2


def test_a_success_in_between_wins(world: World, ends: ExecutionEnds) -> None:
    world.rented()

    def succeeded() -> None:
        world.change_run(outcome=Outcome.SUCCEEDED)
        world.change_machine(**GONE)

    world.store.before_next_commit(succeeded)

    ends.ended(RUN)

    assert world.run.outcome is Outcome.SUCCEEDED
    assert world.machine.goal is Goal.GONE
