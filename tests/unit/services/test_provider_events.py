"""Provider's events: they wake a workflow, what they are about is looked at at once, and warnings are passed on."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tensorant.domain.errors import Permission, ProviderFault
from tensorant.domain.machines import Disposition, Goal, MachineState, Seen
from tensorant.domain.maintenance import ScheduledChange
from tensorant.domain.runs import Outcome
from tensorant.services.provider_events import ProviderEvents
from tests.support.worlds import ACCOUNT, RUN, World, later

REGION = "us-east-1"
BY_USER = "Client.UserInitiatedShutdown: User initiated shutdown"
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


def test_a_machine_terminated_outside_is_on_the_timeline_before_the_workflow_looks(
    world: World, events: ProviderEvents
) -> None:
    """Nobody waits: the workflow may be pausing between two tries."""
    rented = world.rented()
    world.compute.set(rented.instance_id or "", Seen.SHUTTING_DOWN, reason=BY_USER)

    assert changed(world, events)

    (fact,) = world.store.timeline(RUN)
    assert (fact.kind, fact.message, fact.at) == ("machine_shutting_down", BY_USER, world.clock.now())
    assert world.run.outcome is None  # that is the workflow's to decide
    assert world.compute.calls == [("observe", rented.instance_id)]


def test_an_event_that_comes_twice_or_late_is_told_once(world: World, events: ProviderEvents) -> None:
    rented = world.rented()
    world.compute.set(rented.instance_id or "", Seen.SHUTTING_DOWN, reason=BY_USER)

    for _ in range(3):
        changed(world, events)

    assert world.told() == ["machine_shutting_down"]


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


def test_a_definite_refusal_is_kept_in_the_record_and_the_event_is_done_with(
    world: World, events: ProviderEvents
) -> None:
    world.rented(**STOPPED)
    world.compute.fail_next("observe", Permission("UnauthorizedOperation", "No.", mend="Allow it."))

    assert changed(world, events)

    assert world.machine.trouble is not None
    assert world.machine.trouble.mend == "Allow it."
    assert world.told() == ["machine_trouble"]


# -- scheduled changes -------------------------------------------------------------------------------------

RETIREMENT = "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"


def scheduled(
    world: World,
    events: ProviderEvents,
    *,
    account_id: str = ACCOUNT,
    region: str = REGION,
    starts_at: datetime | None = None,
) -> int:
    ids = ("i-of-somebody-else", world.machine.instance_id or "")
    change = ScheduledChange(code=RETIREMENT, starts_at=starts_at or later(days=2), instance_ids=ids)
    return events.change_scheduled(account_id, region, change)


def test_a_scheduled_change_warns_the_run_whose_machine_it_is(world: World, events: ProviderEvents) -> None:
    rented = world.rented()

    assert scheduled(world, events) == 1

    (warning,) = world.store.timeline(RUN)
    assert (warning.kind, warning.source, warning.attempt) == ("machine_warning", "provider", 1)
    assert warning.message == (
        f"EC2 will stop the machine {rented.instance_id} from 2026-08-03 12:00 UTC on; its disk is kept. "
        "Let the run finish before, or recover its adapter from the disk afterwards. "
        "(AWS Health: AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED)"
    )
    assert world.compute.calls == []
    assert world.machine == rented


def test_a_notice_that_comes_again_is_no_second_warning(world: World, events: ProviderEvents) -> None:
    world.rented()

    scheduled(world, events)
    world.clock.forward(hours=1)
    scheduled(world, events)

    assert world.told() == ["machine_warning"]


def test_a_change_at_another_time_is_told_again(world: World, events: ProviderEvents) -> None:
    world.rented()

    scheduled(world, events)
    scheduled(world, events, starts_at=later(days=3))

    assert world.told() == ["machine_warning", "machine_warning"]


@pytest.mark.parametrize("where", [{"account_id": "999900001111"}, {"region": "eu-west-1"}])
def test_a_notice_of_another_account_or_region_warns_nobody(
    world: World, events: ProviderEvents, where: dict[str, str]
) -> None:
    world.rented()

    assert scheduled(world, events, **where) == 0
    assert world.told() == []


def test_a_machine_that_is_gone_needs_no_warning(world: World, events: ProviderEvents) -> None:
    world.rented(Seen.GONE, **GONE)

    assert scheduled(world, events) == 0
    assert world.told() == []
