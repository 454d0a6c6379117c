"""How long to wait for a machine before looking at it again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

HEARTBEAT_SECONDS = 60
"""How often a machine speaks."""

SLOW_POLL = timedelta(minutes=15)
"""A machine is looked at this often even if all is quiet and well."""

SILENCE_WHILE_BOOTING = timedelta(minutes=10)
"""From the ask to the machine's first word."""

SILENCE_WHILE_RUNNING = timedelta(minutes=5)
"""Between two words of a machine that has spoken: five heartbeats."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Whole seconds, positive, heartbeat below time-out."""

    heartbeat_seconds: int
    timeout_seconds: int


def silence_limit(*, has_spoken: bool) -> timedelta:
    return SILENCE_WHILE_RUNNING if has_spoken else SILENCE_WHILE_BOOTING


def patience(now: datetime, *, deadline_at: datetime, has_spoken: bool) -> Patience:
    """The wait's limits: the slow poll or what is left of the run's time, whichever is sooner."""
    timeout = max(2, int(min(SLOW_POLL, deadline_at - now).total_seconds()) + 1)
    silence = int(silence_limit(has_spoken=has_spoken).total_seconds())
    return Patience(heartbeat_seconds=max(1, min(silence, timeout - 1)), timeout_seconds=timeout)
