"""What a task of the state machine answers: always the same complete, flat shape."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tensorant.domain.runs import Operation


class Next(StrEnum):
    LAUNCH = "launch"
    AWAIT = "await"
    VERIFY = "verify"
    RELEASE = "release"
    STOP = "stop"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Ids, the next step and seconds; never whole objects.

    `signal` is the number of the last signal read before deciding: a later one wakes the wait at once.
    Seconds are positive integers with heartbeat below time-out; otherwise Step Functions fails the
    execution with States.Runtime, which nothing can catch.
    """

    run_id: str
    operation: Operation
    number: int
    attempt: int
    next: Next
    signal: int = 0
    delay_seconds: int = 0
    heartbeat_seconds: int = 1
    timeout_seconds: int = 2

    def __post_init__(self) -> None:
        if not 0 < self.heartbeat_seconds < self.timeout_seconds:
            raise ValueError("heartbeat_seconds must be positive and below timeout_seconds")
