from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest

from tensorant_cli import formats


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 s"),
        (-5, "0 s"),
        (8.4, "8 s"),
        (59.6, "1 min"),
        (80, "1 min 20 s"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (259_200, "72 h"),
    ],
)
def test_durations(seconds: float, told: str) -> None:
    assert formats.duration(seconds) == told


@pytest.mark.parametrize(
    ("count", "told"),
    [(None, "-"), (999, "999 B"), (77_480, "77.5 kB"), (9_823_216, "9.8 MB"), (5_000_000_000, "5.0 GB")],
)
def test_sizes(count: int | None, told: str) -> None:
    assert formats.size(count) == told


def test_times_are_utc() -> None:
    in_berlin = datetime(2026, 3, 1, 13, 0, tzinfo=timezone(timedelta(hours=1)))

    assert formats.utc(in_berlin) == "2026-03-01 12:00:00 UTC"


def test_money_is_in_dollars_to_a_hundredth_of_a_cent() -> None:
    assert formats.usd(Decimal("1.5")) == "$1.5000"
    assert formats.usd_per_hour(None) == "-"
