"""The seconds of a wait: Step Functions fails for good on a heartbeat that is not below its time-out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tensorant.domain.waiting import Patience, patience, silence_limit
from tests.support.worlds import NOON, later


@pytest.mark.parametrize(
    ("spoken", "left", "expected"),
    [
        (False, {"hours": 2}, Patience(heartbeat_seconds=600, timeout_seconds=901)),
        (True, {"hours": 2}, Patience(heartbeat_seconds=300, timeout_seconds=901)),
        (True, {"minutes": 10}, Patience(heartbeat_seconds=300, timeout_seconds=601)),
        (False, {"minutes": 10}, Patience(heartbeat_seconds=600, timeout_seconds=601)),
        (True, {"minutes": 2}, Patience(heartbeat_seconds=120, timeout_seconds=121)),
        (True, {"seconds": 1}, Patience(heartbeat_seconds=1, timeout_seconds=2)),
        (True, {"seconds": 0}, Patience(heartbeat_seconds=1, timeout_seconds=2)),
        (True, {"hours": -3}, Patience(heartbeat_seconds=1, timeout_seconds=2)),
    ],
)
def test_patience_ends_at_the_slow_poll_or_the_limit(
    *, spoken: bool, left: dict[str, float], expected: Patience
) -> None:
    assert patience(NOON, deadline_at=later(**left), has_spoken=spoken) == expected


@settings(deadline=None)
@given(seconds=some.floats(-1e7, 1e7), spoken=some.booleans())
def test_the_heartbeat_is_always_positive_and_below_the_time_out(*, seconds: float, spoken: bool) -> None:
    wait = patience(NOON, deadline_at=later(seconds=seconds), has_spoken=spoken)

    assert 0 < wait.heartbeat_seconds < wait.timeout_seconds
    assert isinstance(wait.heartbeat_seconds, int)
    assert isinstance(wait.timeout_seconds, int)


@settings(deadline=None)
@given(seconds=some.floats(1, 899))
def test_a_wait_ends_just_after_the_limit_and_not_before_it(seconds: float) -> None:
    wait = patience(NOON, deadline_at=later(seconds=seconds), has_spoken=True)

    assert seconds < wait.timeout_seconds + 1e-6
    assert wait.timeout_seconds <= seconds + 2


def test_booting_may_be_silent_for_longer_than_running() -> None:
    assert silence_limit(has_spoken=False).total_seconds() == 600
    assert silence_limit(has_spoken=True).total_seconds() == 300
