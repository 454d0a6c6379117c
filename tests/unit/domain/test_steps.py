"""A step never carries seconds that would end its execution for good."""

from __future__ import annotations

import pytest

from tests.support.worlds import step


@pytest.mark.parametrize(("heartbeat", "timeout"), [(0, 10), (-1, 10), (10, 10), (11, 10)])
def test_seconds_that_nothing_could_catch_are_refused(heartbeat: int, timeout: int) -> None:
    with pytest.raises(ValueError, match="heartbeat_seconds"):
        step(heartbeat_seconds=heartbeat, timeout_seconds=timeout)


def test_the_least_wait_is_one_of_two_seconds() -> None:
    assert step(heartbeat_seconds=1, timeout_seconds=2).timeout_seconds == 2
