"""What stands between a machine and its goal: kept for people to mend, and forgotten once it is mended."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant.domain.errors import Configuration, Permission, ProviderError, ProviderFault, Throttled
from tensorant.domain.failures import Failure
from tensorant.domain.machines import Disposition, Goal, Machine, MachineState, Observation, Seen
from tensorant.services.converge import converge
from tests.support.worlds import World

GONE: dict[str, Any] = {"goal": Goal.GONE, "disposition": Disposition.VERIFIED}
REFUSED = Permission("UnauthorizedOperation", "Not allowed.", mend="Restore the tag.")


def once(world: World, seen: Observation | None = None) -> Machine:
    return converge(world.machine, compute=world.compute, store=world.store, clock=world.clock, seen=seen)


@pytest.mark.parametrize("operation", ["observe", "terminate"])
def test_a_refusal_is_raised_and_kept(world: World, operation: str) -> None:
    world.rented(**GONE)
    world.compute.fail_next(operation, REFUSED)

    with pytest.raises(Permission):
        once(world)

    assert world.machine.trouble == Failure.of(REFUSED)
    (fact,) = world.store.timeline("run-1")
    assert (fact.kind, fact.source, fact.message) == (
        "machine_trouble",
        "provider",
        "Not allowed. Restore the tag.",
    )


def test_the_same_trouble_is_told_once_and_another_again(world: World) -> None:
    world.rented(**GONE)

    for error in (REFUSED, REFUSED, Configuration("InvalidParameter", "No.")):
        world.compute.fail_next("terminate", error)
        with pytest.raises(ProviderError):
            once(world)

    assert world.told() == ["machine_trouble", "machine_trouble"]
    assert world.machine.trouble is not None
    assert world.machine.trouble.code == "InvalidParameter"


@pytest.mark.parametrize("error", [ProviderFault("no_answer", "None."), Throttled("Throttling", "Slow.")])
def test_what_passes_by_itself_is_no_trouble(world: World, error: ProviderError) -> None:
    before = world.rented(**GONE)
    world.compute.fail_next("terminate", error)

    with pytest.raises(type(error)):
        once(world)

    assert world.machine == before


def test_a_call_that_succeeds_clears_the_trouble(world: World) -> None:
    world.rented(**GONE)
    world.compute.fail_next("terminate", REFUSED)
    with pytest.raises(Permission):
        once(world)

    once(world)
    assert world.machine.trouble is None

    world.compute.let_time_pass()
    once(world)
    assert (world.machine.trouble, world.machine.state) == (None, MachineState.RELEASED)


def test_a_reading_of_the_caller_is_not_made_again(world: World) -> None:
    rented = world.rented(**GONE)

    once(world, Observation(state=Seen.RUNNING, instance_id=rented.instance_id))

    assert world.compute.calls == [("terminate", rented.instance_id)]


# -- recovery ----------------------------------------------------------------------------------------------


def test_a_restart_by_its_owner_is_held_against_no_stop_until_its_window_ends(world: World) -> None:
    rented = world.rented(Seen.STOPPED, goal=Goal.STOPPED)
    world.compute.restart(rented.instance_id or "", at=world.clock.forward(hours=1))

    once(world)
    world.clock.forward(hours=1, minutes=59, seconds=59)
    once(world)
    assert world.compute.asked("stop") == []
    assert world.machine.state is MachineState.RECOVERING

    world.clock.forward(seconds=1)
    once(world)
    assert world.compute.asked("stop") == [rented.instance_id]

    world.compute.let_time_pass()
    once(world)
    assert world.machine.state is MachineState.RETAINED
    assert world.told() == ["machine_recovering", "machine_stopped"]


def test_a_discard_does_not_wait_for_the_window(world: World) -> None:
    rented = world.rented(Seen.STOPPED, goal=Goal.STOPPED)
    world.compute.restart(rented.instance_id or "", at=world.clock.forward(hours=1))
    once(world)
    world.change_machine(goal=Goal.GONE, disposition=Disposition.DISCARDED)

    once(world)

    assert world.compute.asked("terminate") == [rented.instance_id]
