"""Looking at a machine and deciding what is next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tensorant.contract import EventType
from tensorant.domain.deliveries import Delivery, RefusedUpload
from tensorant.domain.errors import FailureClass, NotYetConfirmed, ProviderFault, Storage
from tensorant.domain.failures import Failure
from tensorant.domain.machines import Candidate, Disposition, Goal, Seen
from tensorant.domain.runs import Outcome, Progress
from tensorant.domain.steps import Next
from tensorant.services.asking import Asker
from tensorant.services.cancel import Cancellations
from tensorant.services.candidates import Choices
from tensorant.services.converge import Converger
from tensorant.services.observe import Observer
from tests.support.fakes.files import etag
from tests.support.worlds import G6, MEMBER, ORG, RUN, SECOND_SUBNET, World, event, later, step

NO_CAPACITY = Failure(
    failure_class=FailureClass.CAPACITY, code="Server.InsufficientInstanceCapacity", message="None here."
)
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


def test_a_refused_upload_is_not_looked_at_again_until_there_is_another(
    world: World, observer: Observer
) -> None:
    world.rented()
    heard(world, minutes=0)
    world.storage.put(MANIFEST, b"{}")
    refused = RefusedUpload(manifest_etag=etag(b"{}"), code="ZIP_CRC", at=later())
    world.change_machine(delivery=Delivery(verifying=etag(b"{}"), refused=(refused,)))

    assert observer.observe(step()).next is Next.AWAIT
    world.storage.put(MANIFEST, b'{"upload": 2}')
    assert observer.observe(step()).next is Next.VERIFY


def test_an_adapter_that_could_not_be_verified_is_kept_at_the_limit(world: World, observer: Observer) -> None:
    world.rented()
    world.storage.put(MANIFEST, b"{}")
    world.change_machine(delivery=Delivery(verifying=etag(b"{}")))

    assert observer.observe(step()).next is Next.VERIFY
    world.clock.forward(hours=2)
    assert observer.observe(step()).next is Next.STOP
    assert world.run.failure is not None
    assert (world.run.outcome, world.run.failure.code) == (Outcome.NEEDS_RECOVERY, "verification_unknown")


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


# -- machines that the provider could not run --------------------------------------------------------------


def refused(world: World, state: Seen = Seen.GONE, **machine_changes: Any) -> None:
    """The first machine is ended by its provider for want of capacity."""
    instance_id = world.rented(Seen.PENDING, **machine_changes).instance_id or ""
    world.compute.end(instance_id, never_ran_because=NO_CAPACITY)
    world.compute.set(instance_id, state)


@pytest.mark.parametrize("state", [Seen.SHUTTING_DOWN, Seen.GONE])
def test_a_machine_without_capacity_costs_its_candidate_and_not_the_run(
    world: World, observer: Observer, state: Seen
) -> None:
    refused(world, state)

    answer = observer.observe(step())

    assert (answer.next, answer.attempt) == (Next.RELEASE, 1)
    assert (world.run.outcome, world.run.refused) == (None, (world.machine.candidate,))
    assert (world.machine.goal, world.machine.disposition) == (Goal.GONE, Disposition.NOTHING_TO_KEEP)
    assert world.machine.closed is (state is Seen.GONE)


def meanwhile(world: World, act: Callable[[], object]) -> None:
    """Between the look at the machine and the decision, which begins with a look at the storage."""
    head = world.storage.head

    def acting(key: str) -> Any:
        world.storage.head = head  # type: ignore[method-assign]
        act()
        return head(key)

    world.storage.head = acting  # type: ignore[method-assign]


def test_one_that_speaks_meanwhile_is_not_passed_over(world: World, observer: Observer) -> None:
    refused(world, Seen.GONE)
    meanwhile(world, lambda: world.change_machine(nonce="spoken"))

    assert observer.observe(step()).next is Next.RELEASE
    assert (world.run.outcome, world.run.refused) == (Outcome.FAILED, ())


def test_what_a_person_decides_meanwhile_stays(world: World, observer: Observer) -> None:
    refused(world, Seen.SHUTTING_DOWN)
    cancellations = Cancellations(world.store, world.workflow, world.clock)
    meanwhile(world, lambda: cancellations.cancel(MEMBER, ORG, RUN, keep_output=False))

    assert observer.observe(step()).next is Next.RELEASE
    assert (world.run.outcome, world.run.failure) == (Outcome.CANCELLED, None)
    assert world.told().count("goal_gone") == 1
    assert "run_failed" not in world.told()


def test_the_next_machine_is_asked_for_only_when_the_first_is_gone(world: World, observer: Observer) -> None:
    refused(world, Seen.SHUTTING_DOWN)
    converger = Converger(world.store, world.computes, world.clock)
    choices = Choices(world.clock, "https://api.example/", "dep-1")
    asker = Asker(world.store, world.computes, world.mint, world.clock, choices)
    released = converger.toward(observer.observe(step()), Goal.GONE, confirm=False)

    with pytest.raises(NotYetConfirmed):
        converger.toward(released, Goal.GONE, confirm=True)
    early = asker.ask(released)  # as a stray call of the workflow would
    world.compute.let_time_pass()
    confirmed = converger.toward(released, Goal.GONE, confirm=True)
    answer = asker.ask(confirmed)

    assert early.next is Next.RELEASE
    assert confirmed.next is Next.LAUNCH
    assert (answer.next, answer.attempt) == (Next.AWAIT, 2)
    first, second = world.store.machines(RUN)
    assert first.closed
    assert second.candidate.subnet_id == SECOND_SUBNET
    assert second.client_token != first.client_token


def test_without_another_candidate_the_run_fails_with_the_providers_reason(
    world: World, observer: Observer
) -> None:
    refused(world)
    other = Candidate(instance_type=G6, subnet_id=SECOND_SUBNET)
    world.change_run(refused=(other,))

    assert observer.observe(step()).next is Next.RELEASE
    assert (world.run.outcome, world.run.failure) == (Outcome.FAILED, NO_CAPACITY)


def test_past_its_limit_a_run_does_not_go_on(world: World, observer: Observer) -> None:
    refused(world)
    world.clock.forward(hours=2)

    observer.observe(step())

    assert (world.run.outcome, world.run.failure) == (Outcome.FAILED, NO_CAPACITY)


def test_a_machine_that_had_spoken_ends_its_run(world: World, observer: Observer) -> None:
    refused(world, nonce="n" * 32)

    observer.observe(step())

    assert world.run.failure is not None
    assert world.run.failure.code == "machine_lost"


def test_a_reason_that_comes_again_with_every_candidate_ends_the_run(
    world: World, observer: Observer
) -> None:
    no_key = Failure(failure_class=FailureClass.PERMISSION, code="Client.InternalError", message="KMS.")
    instance_id = world.rented(Seen.PENDING).instance_id or ""
    world.compute.end(instance_id, never_ran_because=no_key)

    observer.observe(step())

    assert (world.run.outcome, world.run.failure) == (Outcome.FAILED, no_key)


def test_a_cancellation_in_between_is_not_undone_by_going_on(world: World, observer: Observer) -> None:
    refused(world, Seen.SHUTTING_DOWN)
    cancellations = Cancellations(world.store, world.workflow, world.clock)
    world.store.before_next_commit(
        lambda: world.store.before_next_commit(lambda: cancellations.cancel(MEMBER, ORG, RUN))
    )

    assert observer.observe(step()).next is Next.RELEASE
    assert world.run.outcome is Outcome.CANCELLED
    assert world.run.refused == ()
