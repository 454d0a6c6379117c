"""Waking a workflow: nothing is lost between a signaller and a waiter, whoever comes first."""

from __future__ import annotations

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
    """Lets the other side do all of its part right after one of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.after: dict[str, object] = {}

    def signal(self, run_id: str) -> int:
        number = super().signal(run_id)
        self._other("signal")
        return number

    def wait_with(self, run_id: str, task_token: str) -> None:
        super().wait_with(run_id, task_token)
        self._other("wait_with")

    def _other(self, step: str) -> None:
        action = self.after.pop(step, None)
        if callable(action):
            action()


@pytest.mark.parametrize("first", ["signal", "wait_with"])
def test_in_the_middle_of_each_other_one_of_them_wakes(first: str) -> None:
    store, workflow = Interrupted(), FakeWorkflow()

    def signals_now() -> None:
        signal(RUN, store=store, workflow=workflow)

    def waits_now() -> None:
        wait(RUN, "token-1", seen=0, store=store, workflow=workflow)

    store.after[first] = waits_now if first == "signal" else signals_now
    (signals_now if first == "signal" else waits_now)()

    assert set(workflow.woken) == {"token-1"}
