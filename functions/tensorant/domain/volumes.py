"""A machine's disk that somebody has changed to outlive it: told, since it costs money that nobody counts."""

from __future__ import annotations

from collections.abc import Sequence

from tensorant.domain.machines import Machine
from tensorant.domain.timeline import Fact

VOLUME_KEPT = "machine_volume_kept"
"""Kind of the fact that tells of it."""


def newly_kept(before: Machine, after: Machine) -> bool:
    """Whether this reading is the first to show it."""
    return after.kept_volume is not None and before.kept_volume is None


def told_kept(machine: Machine) -> str:
    """What it means while the machine is there, and what to do; empty if the disk goes with the machine."""
    volume = machine.kept_volume
    if volume is None:
        return ""
    return (
        f"The disk {volume.volume_id} of the machine {machine.instance_id} will not go with it: its "
        "DeleteOnTermination was changed to false. Set it to true again in EC2, or delete the disk by hand "
        "once the machine is released; until then it costs money."
    )


def told_left_over(machine: Machine) -> str:
    """What a released machine has left behind; empty if nothing."""
    volume = machine.left_over_volume
    if volume is None:
        return ""
    return (
        f"The disk {volume.volume_id} was left behind, since its DeleteOnTermination had been changed to false. "
        f"It costs about ${machine.quote.disk_usd_per_hour} an hour, which is not counted here: delete it in EC2."
    )


def kept_volumes(facts: Sequence[Fact], machines: Sequence[Machine]) -> tuple[Fact, ...]:
    """The last warning for each disk that, as far as is known, still outlives its machine."""
    kept = {machine.attempt for machine in machines if machine.kept_volume is not None}
    last = {fact.attempt: fact for fact in facts if fact.kind == VOLUME_KEPT}
    return tuple(fact for attempt, fact in last.items() if attempt in kept)
