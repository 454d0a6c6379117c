"""Waiting for work that the API has accepted and not finished."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tensorant_cli.errors import CliError
from tensorant_cli.http import Sleep

Thing = TypeVar("Thing")

POLL_SECONDS = 1.0


def wait_until(
    read: Callable[[], Thing],
    done: Callable[[Thing], bool],
    *,
    what: str,
    seconds: float,
    sleep: Sleep,
    again: str,
) -> Thing:
    """Read until done. Raises `CliError` after `seconds`; the work may still go on."""
    for _ in range(max(1, round(seconds / POLL_SECONDS))):
        thing = read()
        if done(thing):
            return thing
        sleep(POLL_SECONDS)
    raise CliError(f"{what} is not done after {seconds:.0f} s.", mend=f"Look again later: {again}.")
