"""Lost races: read again and try again, a few times."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tensorant.domain.errors import Conflict

T = TypeVar("T")

TRIES = 6
CHANGED = "changed_meanwhile"
"""Code of the conflicts that reading again can settle."""


def until_settled(attempt: Callable[[], T], *, tries: int = TRIES) -> T:
    """Call `attempt`, which must read before it writes, until nobody was faster.

    Raises the last `Conflict`, or at once one that is not about a record changed meanwhile.
    """
    for left in reversed(range(tries)):
        try:
            return attempt()
        except Conflict as conflict:
            if conflict.code != CHANGED or not left:
                raise
    raise AssertionError("unreachable")
