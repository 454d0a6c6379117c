"""What follows from all that is known of a machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tensorant.contract import EventType, TrainerExit
from tensorant.domain.deliveries import Delivery, RefusedUpload
from tensorant.domain.errors import FailureClass
from tensorant.domain.failures import Failure
from tensorant.domain.machines import Cause, Seen
from tensorant.domain.steps import Next
from tensorant.domain.verdicts import Evidence, Verdict, judge
from tests.support.worlds import event, later, machine

NO_CAPACITY = Failure(
    failure_class=FailureClass.CAPACITY, code="Server.InsufficientInstanceCapacity", message="None here."
)
RUNNING = machine(instance_id="i-1", seen=Seen.RUNNING)


def evidence(**changes: Any) -> Evidence:
    """A machine that spoke a minute ago, half an hour into its two hours."""
    healthy = Evidence(
        machine=RUNNING,
        now=later(minutes=30),
        deadline_at=later(hours=2),
        heard_at=later(minutes=29),
        terminal_event=None,
        finished=False,
    )
    return replace(healthy, **changes)


def seen(state: Seen, reason: str = "") -> Any:
    return replace(RUNNING, seen=state, reason=reason)


def verdict_of(found: Verdict) -> tuple[Next, FailureClass | None, str | None]:
    failure = found.failure
    return found.next, failure.failure_class if failure else None, failure.code if failure else None


@pytest.mark.parametrize("state", [Seen.PENDING, Seen.RUNNING])
def test_a_healthy_machine_is_waited_for(state: Seen) -> None:
    assert verdict_of(judge(evidence(machine=seen(state)))) == (Next.AWAIT, None, None)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"machine": seen(Seen.GONE)},
        {"machine": seen(Seen.STOPPED)},
        {"now": later(days=3)},
        {"heard_at": None, "now": later(hours=1)},
        {"terminal_event": event(EventType.FAILED, code="bug")},
    ],
)
def test_a_finished_archive_counts_before_anything_else(changes: dict[str, Any]) -> None:
    assert verdict_of(judge(evidence(finished=True, **changes))) == (Next.VERIFY, None, None)


def test_a_verification_that_comes_to_no_verdict_is_tried_until_the_limit() -> None:
    within = evidence(finished=True, tried=True)
    past = evidence(finished=True, tried=True, now=later(hours=2), heard_at=later(hours=2))

    assert verdict_of(judge(within)) == (Next.VERIFY, None, None)
    assert verdict_of(judge(past)) == (Next.STOP, FailureClass.DEADLINE, "verification_unknown")


def test_an_archive_of_the_last_minute_is_verified_once_past_the_limit() -> None:
    assert judge(evidence(finished=True, now=later(hours=3))).next is Next.VERIFY


def test_a_trainer_that_was_asked_to_upload_again_is_waited_for_though_it_had_completed() -> None:
    refused = RefusedUpload(manifest_etag="1", code="ZIP_CRC", at=later(minutes=20))
    asked = replace(RUNNING, delivery=Delivery(refused=(refused,)))
    completed = event(EventType.COMPLETED)
    failed = event(EventType.FAILED, code="storage")

    assert judge(evidence(machine=asked, terminal_event=completed)).next is Next.AWAIT
    assert judge(evidence(machine=RUNNING, terminal_event=completed)).next is Next.STOP
    assert judge(evidence(machine=asked, terminal_event=failed)).next is Next.STOP


@pytest.mark.parametrize("state", [Seen.GONE, Seen.SHUTTING_DOWN])
@pytest.mark.parametrize(
    ("cause", "who"),
    [
        (None, "The machine i-1 was terminated outside Tensorant"),
        (Cause.CALL, "Somebody terminated the machine i-1 through the provider's API or console"),
        (
            Cause.HOST,
            "The operating system of the machine i-1 shut down, and the machine was set to end with it",
        ),
        (Cause.PROVIDER, "The provider terminated the machine i-1, for maintenance or after a fault"),
    ],
)
def test_a_machine_that_was_terminated_is_lost_and_who_did_it_is_told(
    state: Seen, cause: Cause | None, who: str
) -> None:
    found = judge(evidence(machine=replace(seen(state, "EC2's own text"), cause=cause)))

    assert verdict_of(found) == (Next.RELEASE, FailureClass.LOST, "machine_lost")
    assert found.failure is not None
    assert found.failure.message == f"{who} (EC2's own text)."
    assert found.failure.mend


@pytest.mark.parametrize("state", [Seen.GONE, Seen.SHUTTING_DOWN])
def test_a_machine_that_could_not_run_says_why(state: Seen) -> None:
    found = judge(evidence(machine=replace(seen(state), never_ran_because=NO_CAPACITY), heard_at=None))

    assert (found.next, found.failure) == (Next.RELEASE, NO_CAPACITY)


def test_a_machine_that_had_spoken_was_lost_whatever_the_reason() -> None:
    ended = replace(seen(Seen.GONE), never_ran_because=NO_CAPACITY, nonce="n" * 32)

    assert verdict_of(judge(evidence(machine=ended))) == (Next.RELEASE, FailureClass.LOST, "machine_lost")


def test_a_machine_that_still_runs_was_not_refused() -> None:
    assert judge(evidence(machine=replace(RUNNING, never_ran_because=NO_CAPACITY))).failure is None


def test_a_full_disk_is_a_matter_of_configuration() -> None:
    found = judge(evidence(terminal_event=event(EventType.FAILED, code=TrainerExit.DISK)))

    assert verdict_of(found) == (Next.RELEASE, FailureClass.CONFIGURATION, TrainerExit.DISK)


@pytest.mark.parametrize("state", [Seen.STOPPED, Seen.STOPPING])
@pytest.mark.parametrize(
    ("cause", "who"),
    [
        (None, "The machine i-1 stopped before the run had finished"),
        (Cause.CALL, "Somebody stopped the machine i-1 through the provider's API or console"),
        (Cause.HOST, "The operating system of the machine i-1 shut down before the run had finished"),
        (Cause.PROVIDER, "The provider stopped the machine i-1, for maintenance or after a fault"),
    ],
)
def test_a_machine_that_was_stopped_is_kept_and_who_did_it_is_told(
    state: Seen, cause: Cause | None, who: str
) -> None:
    found = judge(evidence(machine=replace(seen(state), cause=cause)))

    assert verdict_of(found) == (Next.STOP, FailureClass.LOST, "machine_stopped")
    assert found.failure is not None
    assert found.failure.message == f"{who} (no reason given)."


@pytest.mark.parametrize(
    ("reported", "next_step", "failure_class", "code"),
    [
        (event(EventType.COMPLETED), Next.STOP, FailureClass.STORAGE, "archive_missing"),
        (event(EventType.PREFLIGHT_FAILED, code="driver"), Next.RELEASE, FailureClass.BAD_HOST, "driver"),
        (event(EventType.PREFLIGHT_FAILED), Next.RELEASE, FailureClass.BAD_HOST, "preflight_failed"),
        (event(EventType.TRAINER_EXITED, exit_code=137), Next.STOP, FailureClass.TRAINING, "trainer_killed"),
        (event(EventType.FAILED), Next.STOP, FailureClass.TRAINING, "training_failed"),
    ],
)
def test_a_last_word_of_the_machine_decides(
    reported: Any, next_step: Next, failure_class: FailureClass, code: str
) -> None:
    assert verdict_of(judge(evidence(terminal_event=reported))) == (next_step, failure_class, code)


@pytest.mark.parametrize(
    ("code", "failure_class", "next_step"),
    [
        (TrainerExit.DATASET, FailureClass.DATASET, Next.RELEASE),
        (TrainerExit.DEADLINE, FailureClass.DEADLINE, Next.STOP),
        (TrainerExit.STORAGE, FailureClass.STORAGE, Next.STOP),
        (TrainerExit.OUT_OF_MEMORY, FailureClass.TRAINING, Next.STOP),
        (TrainerExit.DIVERGED, FailureClass.TRAINING, Next.STOP),
        (TrainerExit.SELF_VERIFY, FailureClass.TRAINING, Next.STOP),
        (TrainerExit.INTERRUPTED, FailureClass.TRAINING, Next.STOP),
        (TrainerExit.BUG, FailureClass.TRAINING, Next.STOP),
    ],
)
def test_the_trainers_exit_says_who_can_mend_it(
    code: TrainerExit, failure_class: FailureClass, next_step: Next
) -> None:
    found = judge(evidence(terminal_event=event(EventType.FAILED, code=code, message="it says why")))

    assert verdict_of(found) == (next_step, failure_class, code)
    assert found.failure is not None
    assert found.failure.message == "it says why"


def test_the_killed_containers_status_is_told() -> None:
    found = judge(evidence(terminal_event=event(EventType.TRAINER_EXITED, exit_code=137)))

    assert found.failure is not None
    assert "137" in found.failure.message


def test_at_its_limit_a_run_is_stopped_and_kept() -> None:
    before = evidence(now=later(minutes=119, seconds=59), heard_at=later(minutes=119))
    at = evidence(now=later(hours=2), heard_at=later(minutes=119, seconds=30))

    assert verdict_of(judge(before)) == (Next.AWAIT, None, None)
    assert verdict_of(judge(at)) == (Next.STOP, FailureClass.DEADLINE, "time_limit")


def test_a_machine_that_stopped_itself_at_the_limit_timed_out() -> None:
    found = judge(evidence(machine=seen(Seen.STOPPED), now=later(hours=2)))

    assert verdict_of(found) == (Next.STOP, FailureClass.DEADLINE, "time_limit")


def test_five_missed_heartbeats_are_too_many() -> None:
    quiet = evidence(now=later(minutes=33, seconds=59))
    silent = evidence(now=later(minutes=34))

    assert verdict_of(judge(quiet)) == (Next.AWAIT, None, None)
    assert verdict_of(judge(silent)) == (Next.STOP, FailureClass.PROVIDER_FAULT, "heartbeat_lost")


def test_a_machine_that_never_spoke_has_ten_minutes_from_the_ask() -> None:
    booting = evidence(heard_at=None, now=later(minutes=9, seconds=59))
    mute = evidence(heard_at=None, now=later(minutes=10))

    assert verdict_of(judge(booting)) == (Next.AWAIT, None, None)
    assert verdict_of(judge(mute)) == (Next.RELEASE, FailureClass.CONFIGURATION, "never_heard")


@pytest.mark.parametrize(
    "changes",
    [
        {"machine": seen(Seen.GONE)},
        {"machine": seen(Seen.STOPPED)},
        {"terminal_event": event(EventType.COMPLETED)},
        {"terminal_event": event(EventType.FAILED)},
        {"terminal_event": event(EventType.PREFLIGHT_FAILED)},
        {"terminal_event": event(EventType.TRAINER_EXITED)},
        {"now": later(hours=2)},
        {"now": later(hours=1)},
        {"heard_at": None},
    ],
)
def test_every_failure_says_what_to_do(changes: dict[str, Any]) -> None:
    found = judge(evidence(**changes))

    assert found.failure is not None
    assert found.failure.message
    assert found.failure.mend
