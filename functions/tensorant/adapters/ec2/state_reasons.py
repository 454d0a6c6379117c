"""EC2's reasons for the state of an instance: who brought it about, and whether it could run at all.

Source: EC2 API reference, StateReason; EC2 user guide, "Troubleshoot instance launch issues". The code and the
message may name different reasons, so both are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorant.adapters.ec2.codes import CODES, KMS
from tensorant.domain.errors import FailureClass
from tensorant.domain.failures import Failure
from tensorant.domain.machines import Cause

ENDED = frozenset({"shutting-down", "terminated"})

_CAPACITY = CODES["InsufficientInstanceCapacity"][1]

LAUNCH_FAILURES: dict[str, tuple[FailureClass, str]] = {
    "Client.InvalidSnapshot.NotFound": (
        FailureClass.CONFIGURATION,
        "The AMI's snapshot is gone or not shared with the account: choose another AMI.",
    ),
    "Client.VolumeLimitExceeded": (FailureClass.QUOTA, CODES["VolumeLimitExceeded"][1]),
    "Server.InsufficientInstanceCapacity": (FailureClass.CAPACITY, _CAPACITY),
    "Client.InternalError": (FailureClass.PERMISSION, KMS),
    "Server.InternalError": (FailureClass.CAPACITY, _CAPACITY),
}
"""Reasons of machines that ended before they ran. The two general ones come last: where code and message
disagree, the one that says more counts."""

CAUSES: dict[str, Cause] = {
    "Client.UserInitiatedShutdown": Cause.CALL,
    "Client.InstanceInitiatedShutdown": Cause.HOST,
    "Server.ScheduledStop": Cause.PROVIDER,
    "Server.SpotInstanceShutdown": Cause.PROVIDER,
    "Server.SpotInstanceTermination": Cause.PROVIDER,
    "Server.InsufficientInstanceCapacity": Cause.PROVIDER,
    "Server.InternalError": Cause.PROVIDER,
    "User initiated": Cause.CALL,
    "Service initiated": Cause.PROVIDER,
}
"""Who ended a running period. The last two begin a StateTransitionReason, which has no code."""


def reason(instance: Mapping[str, Any]) -> str:
    """`Code: message` in EC2's own words; empty for an instance of which nothing is to be said."""
    told = instance.get("StateReason") or {}
    code, message = told.get("Code", ""), told.get("Message", "")
    if code in {"", "pending"}:
        return str(instance.get("StateTransitionReason") or "")
    return message if message.startswith(code) else f"{code}: {message}"


def cause(reason: str) -> Cause | None:
    """Who stopped or ended the instance; None if EC2 does not say so in words that are known."""
    return next((found for words, found in CAUSES.items() if words in reason), None)


def never_ran_because(instance: Mapping[str, Any], reason: str) -> Failure | None:
    """Why an instance that is ending could not run; None if it was ended in another way."""
    ending = instance["State"]["Name"] in ENDED
    return launch_failure(instance["InstanceId"], reason) if ending else None


def launch_failure(instance_id: str, reason: str) -> Failure | None:
    """What a reason means for a machine that was made and never ran; None for any other reason."""
    code = next((each for each in LAUNCH_FAILURES if each in reason), None)
    if code is None:
        return None
    failure_class, mend = LAUNCH_FAILURES[code]
    message = f"EC2 could not run the machine {instance_id}: {reason}"
    return Failure(failure_class=failure_class, code=code, message=message, mend=mend)
