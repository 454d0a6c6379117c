"""Provider's events: they wake a workflow, and what has none any more is looked at at once."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant.domain.errors import ProviderFault
from tensorant.domain.machines import Disposition, Goal, MachineState, Seen
from tensorant.domain.runs import Outcome
from tensorant.services.provider_events import ProviderEvents
from tests.support.worlds import ACCOUNT, RUN, World

REGION = "us-east-1"
STOPPED: dict[str, Any] = {"goal": Goal.STOPPED}
GONE: dict[str, Any] = {"goal": Goal.GONE, "disposition": Disposition.DISCARDED}


@pytest.fixture
def events(world: World) -> ProviderEvents:
    return ProviderEvents(world.store, world.workflow, world.computes, world.clock)


def changed(world: World, events: ProviderEvents) -> bool:
    return events.instance_changed(ACCOUNT, REGION, world.machine.instance_id or "")


def test_an_event_wakes_the_run_whose_machine_it_is(world: World, events: ProviderEvents) -> None:
    world.rented()
    world.store.wait_with(RUN, "token-1")

    assert changed(world, events)
    assert world.workflow.woken == ["token-1"]
    assert world.compute.calls == []  # the workflow looks for itself


@pytest.mark.parametrize(
    ("account_id", "region", "instance_id"),
    [
        ("999900001111", REGION, None),
        (ACCOUNT, "eu-west-1", None),
        (ACCOUNT, REGION, "i-of-somebody-else"),
    ],
)
def test_an_event_of_another_account_region_or_machine_wakes_nobody(
    world: World, events: ProviderEvents, account_id: str, region: str, instance_id: str | None
) -> None:
    rented = world.rented()
    world.store.wait_with(RUN, "token-1")

    assert not events.instance_changed(account_id, region, instance_id or rented.instance_id or "")
    assert world.workflow.woken == []
    assert world.store.last_signal(RUN) == 0


@pytest.mark.parametrize(
    ("changes", "seen", "state"),
    [
        (STOPPED, Seen.STOPPED, MachineState.RETAINED),
        (STOPPED, Seen.GONE, MachineState.RELEASED),
        (GONE, Seen.GONE, MachineState.RELEASED),
    ],
)
def test_a_machine_that_nobody_waits_for_is_read_at_once(
    world: World, events: ProviderEvents, changes: dict[str, Any], seen: Seen, state: MachineState
) -> None:
    rented = world.rented(**changes)
    world.change_run(outcome=Outcome.NEEDS_RECOVERY)
    world.compute.set(rented.instance_id or "", seen)

    assert changed(world, events)
    assert world.machine.state is state
    assert world.compute.calls == [("observe", rented.instance_id)]


def test_a_pending_machine_that_begins_to_run_is_stopped_at_once(
    world: World, events: ProviderEvents
) -> None:
    rented = world.rented(Seen.PENDING, **STOPPED)
    world.compute.let_time_pass()

    changed(world, events)

    assert world.compute.asked("stop") == [rented.instance_id]


def test_a_restart_by_its_owner_is_told_and_not_undone(world: World, events: ProviderEvents) -> None:
    rented = world.rented(Seen.STOPPED, **STOPPED)
    world.compute.restart(rented.instance_id or "", at=world.clock.forward(hours=1))

    changed(world, events)

    assert world.machine.state is MachineState.RECOVERING
    assert world.told() == ["machine_recovering"]
    assert world.compute.asked("stop") == []


def test_a_closed_machine_is_not_read_again(world: World, events: ProviderEvents) -> None:
    world.rented(Seen.GONE, **GONE)

    assert changed(world, events)
    assert world.compute.calls == []


def test_a_change_in_between_is_read_again(world: World, events: ProviderEvents) -> None:
    world.rented(**STOPPED)
    world.compute.set(world.machine.instance_id or "", Seen.STOPPED)
    world.store.before_next_commit(lambda: world.change_machine(**GONE))

    changed(world, events)

    assert world.compute.asked("terminate") == [world.machine.instance_id]


def test_trouble_is_raised_after_the_workflow_was_woken(world: World, events: ProviderEvents) -> None:
    world.rented(**STOPPED)
    world.store.wait_with(RUN, "token-1")
    world.compute.fail_next("observe", ProviderFault("no_answer", "None."))

    with pytest.raises(ProviderFault):
        changed(world, events)
    assert world.workflow.woken == ["token-1"]
