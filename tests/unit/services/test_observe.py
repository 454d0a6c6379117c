"""Looking at a machine and deciding what is next."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant.contract import EventType
from tensorant.domain.errors import FailureClass, ProviderFault, Storage
from tensorant.domain.machines import Disposition, Goal, Seen
from tensorant.domain.runs import Outcome, Progress
from tensorant.domain.steps import Next
from tensorant.services.observe import Observer
from tests.support.worlds import RUN, World, event, later, step

MANIFEST = "runs/run-1/attempt-1/adapter.manifest.json"


@pytest.fixture
def observer(world: World) -> Observer:
    return Observer(world.store, world.computes, world.storages, world.clock)


def heard(world: World, **when: float) -> None:
    world.store.save_progress(Progress(run_id=RUN, attempt=1, heard_at=later(**when)))


def test_a_healthy_machine_is_waited_for(world: World, observer: Observer) -> None:
    world.rented()
    heard(world, minutes=1)
    world.clock.forward(minutes=2)

    answer = observer.observe(step())

    # two minutes have passed of the two hours; it has spoken, so five minutes of silence are the most
    assert answer == step(next=Next.AWAIT, attempt=1, heartbeat_seconds=300, timeout_seconds=901)
    assert world.run.outcome is None


def test_a_machine_that_has_not_spoken_has_longer(world: World, observer: Observer) -> None:
    world.rented(Seen.PENDING)

    assert observer.observe(step()).heartbeat_seconds == 600


def test_another_attempts_word_does_not_count(world: World, observer: Observer) -> None:
    world.rented()
    world.store.save_progress(Progress(run_id=RUN, attempt=2, heard_at=later(minutes=9)))
    world.clock.forward(minutes=10)

    assert observer.observe(step()).next is Next.RELEASE
    assert world.run.failure is not None
    assert world.run.failure.code == "never_heard"


def test_the_signal_is_read_before_looking(world: World, observer: Observer) -> None:
    world.rented()
    world.store.signal(RUN)
    world.compute.set(world.machine.instance_id or "", Seen.PENDING)  # so that looking writes
    world.store.before_next_commit(lambda: world.store.signal(RUN))

    assert observer.observe(step()).signal == 1
    assert world.store.last_signal(RUN) == 2


def test_a_finished_archive_is_verified_even_if_its_event_was_lost(world: World, observer: Observer) -> None:
    world.rented(Seen.STOPPED)
    world.storage.put(MANIFEST, b"{}")

    assert observer.observe(step()).next is Next.VERIFY
    assert world.machine.goal is Goal.RUN
    assert world.run.outcome is None


@pytest.mark.parametrize(
    ("state", "when", "word", "next_step", "outcome", "failure_class"),
    [
        (Seen.RUNNING, {"hours": 2}, None, Next.STOP, Outcome.NEEDS_RECOVERY, FailureClass.DEADLINE),
        (Seen.STOPPED, {"minutes": 2}, None, Next.STOP, Outcome.NEEDS_RECOVERY, FailureClass.LOST),
        (Seen.GONE, {"minutes": 2}, None, Next.RELEASE, Outcome.FAILED, FailureClass.LOST),
        (Seen.RUNNING, {"minutes": 6}, None, Next.STOP, Outcome.NEEDS_RECOVERY, FailureClass.PROVIDER_FAULT),
        (
            Seen.RUNNING,
            {"minutes": 2},
            event(EventType.TRAINER_EXITED, exit_code=137),
            Next.STOP,
            Outcome.NEEDS_RECOVERY,
            FailureClass.TRAINING,
        ),
        (
            Seen.RUNNING,
            {"minutes": 2},
            event(EventType.PREFLIGHT_FAILED, code="driver"),
            Next.RELEASE,
            Outcome.FAILED,
            FailureClass.BAD_HOST,
        ),
    ],
)
def test_what_cannot_go_on_is_concluded(
    world: World,
    observer: Observer,
    state: Seen,
    when: dict[str, float],
    word: Any,
    next_step: Next,
    outcome: Outcome,
    failure_class: FailureClass,
) -> None:
    rented = world.rented()
    heard(world, minutes=1)
    world.compute.set(rented.instance_id or "", state)
    if word is not None:
        world.store.save_terminal_event(RUN, 1, word)
    world.clock.forward(**when)

    answer = observer.observe(step())

    assert (answer.next, answer.attempt) == (next_step, 1)
    assert world.run.outcome is outcome
    assert world.run.failure is not None
    assert world.run.failure.failure_class is failure_class
    assert world.machine.goal is (Goal.STOPPED if next_step is Next.STOP else Goal.GONE)


@pytest.mark.parametrize(
    ("changes", "next_step"),
    [
        ({"goal": Goal.STOPPED}, Next.STOP),
        ({"goal": Goal.GONE, "disposition": Disposition.DISCARDED}, Next.RELEASE),
    ],
)
def test_a_goal_that_was_raised_is_followed(
    world: World, observer: Observer, changes: dict[str, Any], next_step: Next
) -> None:
    world.rented(**changes)

    assert observer.observe(step()).next is next_step
    assert world.run.outcome is None


def test_a_cancellation_in_between_wins(world: World, observer: Observer) -> None:
    world.rented(Seen.STOPPED)
    world.store.before_next_commit(
        lambda: world.change_machine(goal=Goal.GONE, disposition=Disposition.DISCARDED)
    )

    assert observer.observe(step()).next is Next.RELEASE
    assert world.machine.disposition is Disposition.DISCARDED


def test_a_machine_that_is_gone_for_good_is_not_read_again(world: World, observer: Observer) -> None:
    world.rented(Seen.GONE)
    confirmed = world.machine.confirmed_gone_at
    world.clock.forward(minutes=1)

    assert observer.observe(step()).next is Next.RELEASE
    assert world.compute.calls == []
    assert world.machine.confirmed_gone_at == confirmed


def test_trouble_with_the_provider_is_repeated_by_the_workflow(world: World, observer: Observer) -> None:
    world.rented()
    world.compute.fail_next("observe", ProviderFault("no_answer", "AWS did not answer."))

    with pytest.raises(ProviderFault):
        observer.observe(step())
    assert observer.observe(step()).next is Next.AWAIT


def test_trouble_with_the_storage_is_raised(world: World, observer: Observer) -> None:
    world.rented()
    world.storage.trouble.append(Storage("storage_failed", "It did not answer."))

    with pytest.raises(Storage):
        observer.observe(step())
    assert world.run.outcome is None
