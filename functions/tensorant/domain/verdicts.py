"""What to do with a machine that has been looked at: one pure decision over all that is known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tensorant.contract import Event, EventType, TrainerExit
from tensorant.domain.errors import FailureClass
from tensorant.domain.failures import Failure
from tensorant.domain.machines import Machine, Seen
from tensorant.domain.steps import Next
from tensorant.domain.waiting import silence_limit

RECOVER = "Open Recover your adapter on the run, or discard its output to release the disk."

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
    """The object beside the archive is in storage: the archive is whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The next step, and why if it is not a good one."""

    next: Next
    failure: Failure | None = None


def judge(evidence: Evidence) -> Verdict:
    """Decide from the storage, the provider, the machine's last word, the limit and its silence.

    A finished archive counts before anything else, since the machine may have died after the upload.
    """
    if evidence.finished:
        return Verdict(next=Next.VERIFY)
    failure = (
        _vanished(evidence.machine)
        or _reported(evidence.terminal_event)
        or _past_deadline(evidence)
        or _stopped_from_outside(evidence)
        or _silent(evidence)
    )
    if failure is None:
        return Verdict(next=Next.AWAIT)
    gone = evidence.machine.seen in {Seen.GONE, Seen.SHUTTING_DOWN}
    return Verdict(next=Next.RELEASE if gone or not failure.may_leave_output else Next.STOP, failure=failure)


LAUNCH_FAILURES: dict[str, tuple[FailureClass, str]] = {
    "Client.InternalError": (
        FailureClass.PERMISSION,
        "Grant the connection the use of the account's default EBS encryption key (KMS).",
    ),
    "Client.VolumeLimitExceeded": (FailureClass.QUOTA, "Request a higher EBS limit in Service Quotas."),
    "Client.InvalidSnapshot.NotFound": (FailureClass.CONFIGURATION, "Choose an AMI whose snapshot exists."),
    "Server.InsufficientInstanceCapacity": (
        FailureClass.CAPACITY,
        "Allow another GPU type or a subnet in another zone, or launch again later.",
    ),
    "Server.InternalError": (FailureClass.CAPACITY, "Launch again later."),
}
"""State reasons of machines that ended before they ran (EC2: instance state reason codes)."""


def _vanished(machine: Machine) -> Failure | None:
    if machine.seen not in {Seen.GONE, Seen.SHUTTING_DOWN}:
        return None
    code = machine.reason.partition(":")[0]
    if machine.nonce is None and code in LAUNCH_FAILURES:
        failure_class, mend = LAUNCH_FAILURES[code]
        message = f"EC2 could not run the machine {machine.instance_id}: {machine.reason}"
        return Failure(failure_class=failure_class, code=code, message=message, mend=mend)
    return Failure(
        failure_class=FailureClass.LOST,
        code="machine_lost",
        message=f"The machine {machine.instance_id} was terminated outside Tensorant ({machine.reason or 'no reason given'}).",
        mend="Find out who terminated it, and launch the run again.",
    )


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
        return Failure(
            failure_class=FailureClass.BAD_HOST,
            code=event.code or "preflight_failed",
            message=event.message or "The machine failed its preflight.",
            mend="Prepare the AMI as the guide says, check it on the chosen GPU, and launch again.",
        )
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
        message=f"The machine {machine.instance_id} stopped before the run had finished ({machine.reason or 'no reason given'}).",
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
