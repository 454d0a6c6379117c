"""Waking a workflow: nothing is lost between a signaller and a waiter, whoever comes first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tensorant.services.signals import beat, signal, wait
from tests.support.fakes import FakeWorkflow, MemoryStore
from tests.support.worlds import RUN, World


def signals(world: World) -> None:
    signal(RUN, store=world.store, workflow=world.workflow)


def waits(world: World, token: str = "token-1", *, seen: int = 0) -> None:
    wait(RUN, token, seen=seen, store=world.store, workflow=world.workflow)


def test_a_signal_wakes_the_waiter(world: World) -> None:
    waits(world)
    signals(world)

    assert world.workflow.woken == ["token-1"]


def test_a_signal_that_came_first_ends_the_wait_at_once(world: World) -> None:
    signals(world)
    waits(world)

    assert world.workflow.woken == ["token-1"]


def test_a_signal_that_was_seen_does_not_wake_again(world: World) -> None:
    signals(world)
    waits(world, seen=1)

    assert world.workflow.woken == []


def test_a_signal_while_observing_wakes_the_next_wait(world: World) -> None:
    signals(world)
    observed = world.store.last_signal(RUN)
    signals(world)
    waits(world, seen=observed)

    assert world.workflow.woken == ["token-1"]


def test_the_present_wait_is_woken_and_not_the_last_one(world: World) -> None:
    waits(world, "token-1")
    waits(world, "token-2")
    signals(world)

    assert world.workflow.woken == ["token-2"]


def test_without_a_waiter_a_signal_only_counts(world: World) -> None:
    signals(world)
    signals(world)

    assert world.workflow.woken == []
    assert world.store.last_signal(RUN) == 2


def test_a_beat_extends_the_present_wait(world: World) -> None:
    beat(RUN, store=world.store, workflow=world.workflow)
    waits(world)
    beat(RUN, store=world.store, workflow=world.workflow)

    assert world.workflow.beaten == ["token-1"]


class Interrupted(MemoryStore):
    """Lets the other side do all of its part between two operations of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0
        self.interruptions: dict[int, Callable[[], None]] = {}

    def interrupt_after(self, operations: int, other: Callable[[], None]) -> None:
        self.interruptions[operations] = other

    def _done(self) -> None:
        self.operations += 1
        other = self.interruptions.pop(self.operations, None)
        if other is not None:
            other()

    def signal(self, run_id: str) -> int:
        number = super().signal(run_id)
        self._done()
        return number

    def waiter(self, run_id: str) -> str | None:
        token = super().waiter(run_id)
        self._done()
        return token

    def wait_with(self, run_id: str, task_token: str) -> None:
        super().wait_with(run_id, task_token)
        self._done()

    def last_signal(self, run_id: str) -> int:
        number = super().last_signal(run_id)
        self._done()
        return number


@pytest.mark.parametrize("first", ["signaller", "waiter"])
@pytest.mark.parametrize("operations", [1, 2])
def test_in_the_middle_of_each_other_one_of_them_wakes(first: str, operations: int) -> None:
    store, workflow = Interrupted(), FakeWorkflow()
    sides: dict[str, Callable[[], None]] = {
        "signaller": lambda: signal(RUN, store=store, workflow=workflow),
        "waiter": lambda: wait(RUN, "token-1", seen=0, store=store, workflow=workflow),
    }
    (other,) = sides.keys() - {first}
    store.interrupt_after(operations, sides[other])

    sides[first]()

    assert not store.interruptions
    assert set(workflow.woken) == {"token-1"}
