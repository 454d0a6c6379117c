"""What DescribeInstances says of an instance, in the domain's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorant.adapters.ec2 import state_reasons
from tensorant.domain.machines import Observation, RootVolume, Seen
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
    reason = state_reasons.reason(instance)
    return Observation(
        state=STATES[instance["State"]["Name"]],
        instance_id=instance["InstanceId"],
        started_at=instance.get("LaunchTime"),
        reason=reason,
        cause=state_reasons.cause(reason),
        never_ran_because=state_reasons.never_ran_because(instance, reason),
        root_volume=root_volume(instance),
    )


def root_volume(instance: Mapping[str, Any]) -> RootVolume | None:
    """The root disk; None while it is not attached yet, or no more.

    Source: EC2 DescribeInstances, BlockDeviceMappings. The guide's policy has no DescribeVolumes.
    """
    for device in instance.get("BlockDeviceMappings", []):
        volume = device.get("Ebs", {})
        if device.get("DeviceName") == instance.get("RootDeviceName") and "VolumeId" in volume:
            return RootVolume(
                volume_id=volume["VolumeId"], deleted_on_termination=bool(volume.get("DeleteOnTermination"))
            )
    return None


def listed(instance: Mapping[str, Any]) -> Listed:
    tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
    attempt = tags.get("tensorant:attempt", "")
    return Listed(
        observation=observation(instance),
        client_token=instance.get("ClientToken") or None,
        run_id=tags.get("tensorant:run"),
        attempt=int(attempt) if attempt.isdecimal() else None,
    )
