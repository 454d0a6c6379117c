"""Trying again, with growing pauses."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

T = TypeVar("T")

PAUSES_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""About a minute altogether: longer than a deployment or a failover behind the API, short beside a run."""


def retried(call: Callable[[], T], *, on: type[Exception], pause: Callable[[float], None]) -> T:
    """The call's answer; the last error if it still fails after the last pause. Other errors pass at once."""
    for seconds in PAUSES_SECONDS:
        try:
            return call()
        except on as error:
            log.warning("%s Trying again in %g s.", error, seconds)
            pause(seconds)
    return call()
