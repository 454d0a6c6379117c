"""How the conformance tests wait."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Seen = TypeVar("Seen")

TIME_SCALE = 0.1
"""Real seconds for a second of a state machine."""


def eventually(look: Callable[[], Seen], wanted: Callable[[Seen], bool], *, seconds: float = 10.0) -> Seen:
    """What is seen once it is as wanted; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not wanted(seen := look()):
        assert time.monotonic() < deadline, f"still {seen!r}"
        time.sleep(0.02)
    return seen


def pause(state_machine_seconds: float) -> None:
    """Let seconds of a state machine pass."""
    time.sleep(state_machine_seconds * TIME_SCALE)
