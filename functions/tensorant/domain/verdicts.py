"""What to do with a machine that has been looked at: one pure decision over all that is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tensorant.contract import Event, EventType, TrainerExit
from tensorant.domain.errors import FailureClass
from tensorant.domain.failures import Failure
from tensorant.domain.host_faults import host_failure
from tensorant.domain.machines import Cause, Machine, Seen
from tensorant.domain.steps import Next
from tensorant.domain.waiting import silence_limit

RECOVER = "Open Recover your adapter on the run, or discard its output to release the disk."

LAUNCH_AGAIN = "Launch the run again: it gets another machine."

STOPPED_BY = {
    Cause.CALL: "Somebody stopped the machine {} through the provider's API or console",
    Cause.HOST: "The operating system of the machine {} shut down before the run had finished",
    Cause.PROVIDER: "The provider stopped the machine {}, for maintenance or after a fault",
}
ENDED_BY = {
    Cause.CALL: "Somebody terminated the machine {} through the provider's API or console",
    Cause.HOST: "The operating system of the machine {} shut down, and the machine was set to end with it",
    Cause.PROVIDER: "The provider terminated the machine {}, for maintenance or after a fault",
}
"""What people read when a machine ends that was meant to run: then nobody of Tensorant's did it."""

EVENT_FAILURES: dict[str, FailureClass] = {
    TrainerExit.DATASET: FailureClass.DATASET,
    TrainerExit.DEADLINE: FailureClass.DEADLINE,
    TrainerExit.STORAGE: FailureClass.STORAGE,
    TrainerExit.DISK: FailureClass.CONFIGURATION,
}
"""Trainer's exits that are not the training's own fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is known of a machine at one moment."""

    machine: Machine
    now: datetime
    deadline_at: datetime
    heard_at: datetime | None
    terminal_event: Event | None
    finished: bool
    """The object beside the archive is in storage, of an upload that was not refused: the archive is whole."""
    tried: bool = False
    """Its verification has begun before, and came to no verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The next step, and why if it is not a good one."""

    next: Next
    failure: Failure | None = None


def judge(evidence: Evidence) -> Verdict:
    """Decide from the storage, the provider, the machine's last word, the limit and its silence.

    A finished archive counts before anything else, since the machine may have died after the upload. While
    its verification crashes it is tried again until the limit.
    """
    unverified = _unverified(evidence)
    if evidence.finished and unverified is None:
        return Verdict(next=Next.VERIFY)
    failure = (
        unverified
        or _vanished(evidence.machine)
        or _reported(_last_word(evidence))
        or _past_deadline(evidence)
        or _stopped_from_outside(evidence)
        or _silent(evidence)
    )
    if failure is None:
        return Verdict(next=Next.AWAIT)
    gone = evidence.machine.seen in {Seen.GONE, Seen.SHUTTING_DOWN}
    return Verdict(next=Next.RELEASE if gone or not failure.may_leave_output else Next.STOP, failure=failure)


def _unverified(evidence: Evidence) -> Failure | None:
    if not (evidence.finished and evidence.tried) or evidence.now < evidence.deadline_at:
        return None
    return Failure(
        failure_class=FailureClass.DEADLINE,
        code="verification_unknown",
        message="The run's time limit was reached, and the adapter in storage could not be verified.",
        mend=f"See why the verifier failed. {RECOVER}",
    )


def _last_word(evidence: Evidence) -> Event | None:
    """A trainer that was asked to upload again is not done, though it had said so."""
    event = evidence.terminal_event
    done = event is not None and event.type is EventType.COMPLETED
    return None if done and evidence.machine.delivery.refused else event


def _vanished(machine: Machine) -> Failure | None:
    if machine.seen not in {Seen.GONE, Seen.SHUTTING_DOWN}:
        return None
    if machine.never_ran:
        return machine.never_ran_because
    return Failure(
        failure_class=FailureClass.LOST,
        code="machine_lost",
        message=_told(machine, ENDED_BY, "The machine {} was terminated outside Tensorant"),
        mend=LAUNCH_AGAIN
        if machine.cause is Cause.PROVIDER
        else "Find out who did, and launch the run again.",
    )


def _told(machine: Machine, by: Mapping[Cause, str], otherwise: str) -> str:
    """Who ended its running, in people's words, with the provider's own behind them."""
    words = by[machine.cause] if machine.cause is not None else otherwise
    return f"{words.format(machine.instance_id)} ({machine.reason or 'no reason given'})."


def _reported(event: Event | None) -> Failure | None:
    if event is None:
        return None
    if event.type is EventType.COMPLETED:
        return Failure(
            failure_class=FailureClass.STORAGE,
            code="archive_missing",
            message="The trainer reported completion, but its archive is not in storage.",
            mend=RECOVER,
        )
    if event.type is EventType.PREFLIGHT_FAILED:
        return host_failure(event)
    if event.type is EventType.TRAINER_EXITED:
        return Failure(
            failure_class=FailureClass.TRAINING,
            code="trainer_killed",
            message=f"The trainer's container ended with status {event.exit_code} before it had finished.",
            mend=RECOVER,
        )
    return Failure(
        failure_class=EVENT_FAILURES.get(event.code or "", FailureClass.TRAINING),
        code=event.code or "training_failed",
        message=event.message or "The trainer gave up.",
        mend=RECOVER,
    )


def _stopped_from_outside(evidence: Evidence) -> Failure | None:
    machine = evidence.machine
    if machine.seen not in {Seen.STOPPED, Seen.STOPPING}:
        return None
    return Failure(
        failure_class=FailureClass.LOST,
        code="machine_stopped",
        message=_told(machine, STOPPED_BY, "The machine {} stopped before the run had finished"),
        mend=RECOVER,
    )


def _past_deadline(evidence: Evidence) -> Failure | None:
    if evidence.now < evidence.deadline_at:
        return None
    return Failure(
        failure_class=FailureClass.DEADLINE,
        code="time_limit",
        message="The run's time limit was reached before its adapter was in storage.",
        mend=RECOVER,
    )


def _silent(evidence: Evidence) -> Failure | None:
    machine = evidence.machine
    spoken = evidence.heard_at is not None
    last_word = evidence.heard_at or machine.asked_at
    if evidence.now - last_word < silence_limit(has_spoken=spoken):
        return None
    if spoken or machine.nonce is not None:  # once it has its session it may train, though no word arrives
        return Failure(
            failure_class=FailureClass.PROVIDER_FAULT,
            code="heartbeat_lost",
            message=f"The machine {machine.instance_id} has not been heard since {last_word:%Y-%m-%d %H:%M:%S} UTC.",
            mend=RECOVER,
        )
    return Failure(
        failure_class=FailureClass.CONFIGURATION,
        code="never_heard",
        message=f"The machine {machine.instance_id} started but never reached the control plane.",
        mend="Check that its subnet has an outbound route for HTTPS and that the AMI has cloud-init and Python 3.",
    )
