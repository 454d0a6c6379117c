"""What DescribeInstances says of an instance, in the domain's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorant.domain.machines import Observation, Seen
from tensorant.ports import Listed

STATES = {
    "pending": Seen.PENDING,
    "running": Seen.RUNNING,
    "stopping": Seen.STOPPING,
    "stopped": Seen.STOPPED,
    "shutting-down": Seen.SHUTTING_DOWN,
    "terminated": Seen.GONE,
}


def observation(instance: Mapping[str, Any]) -> Observation:
    reason = reason_of(instance.get("StateReason", {})) or instance.get("StateTransitionReason", "")
    return Observation(
        state=STATES[instance["State"]["Name"]],
        instance_id=instance["InstanceId"],
        started_at=instance.get("LaunchTime"),
        reason=reason,
    )


def listed(instance: Mapping[str, Any]) -> Listed:
    tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
    attempt = tags.get("tensorant:attempt", "")
    return Listed(
        observation=observation(instance),
        client_token=instance.get("ClientToken") or None,
        run_id=tags.get("tensorant:run"),
        attempt=int(attempt) if attempt.isdecimal() else None,
    )


def reason_of(told: Mapping[str, str]) -> str:
    """`Code: message` of a StateReason; a pending instance's says nothing."""
    code, message = told.get("Code", ""), told.get("Message", "")
    if code in {"", "pending"}:
        return ""
    return message if message.startswith(code) else f"{code}: {message}"
