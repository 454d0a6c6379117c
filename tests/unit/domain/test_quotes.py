"""Quotes, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from tensorant.domain.errors import Price
from tensorant.domain.quotes import Quote, quote, rounded
from tests.support.worlds import NOON, later


def quoted(compute: str | None = "0.8048", disk: str | None = "0.08", gib: int = 145) -> Quote:
    return quote(
        "g6.xlarge",
        compute_usd_per_hour=None if compute is None else Decimal(compute),
        disk_usd_per_gib_month=None if disk is None else Decimal(disk),
        disk_gib=gib,
        priced_at=NOON,
    )


def test_an_hour_is_compute_and_the_disks_730th() -> None:
    # 0.08 · 145 = 11.60 a month; / 730 = 0.015890… an hour
    assert quoted().disk_usd_per_hour == Decimal("0.0159")
    assert quoted().usd_per_hour == Decimal("0.8207")


def test_the_quote_says_what_is_not_in_it() -> None:
    assert quoted().excluded == ("NAT gateway", "data transfer", "taxes", "account-specific discounts")


def test_the_quote_lists_its_parts_and_how_they_come_about() -> None:
    parts = [(each.name, each.usd_per_hour, each.basis) for each in quoted().parts]

    assert parts == [
        ("compute", Decimal("0.8048"), "g6.xlarge, Linux, on demand"),
        ("disk", Decimal("0.0159"), "145 GiB of gp3 at $0.08 a GiB-month, over 730 hours"),
    ]


def test_a_quote_that_was_stored_before_the_rate_was_kept_still_lists_its_parts() -> None:
    old = replace(quoted(), disk_usd_per_gib_month=None)

    assert old.parts[1].basis == "145 GiB of gp3, over 730 hours"


@pytest.mark.parametrize(
    ("now", "age", "holds"),
    [
        (NOON, timedelta(0), True),
        (later(minutes=15), timedelta(minutes=15), True),
        (later(minutes=15, seconds=1), timedelta(minutes=15, seconds=1), False),
        (later(seconds=-3), timedelta(0), True),  # by a clock that is behind
    ],
)
def test_a_quote_grows_old(*, now: datetime, age: timedelta, holds: bool) -> None:
    assert (quoted().age(now), quoted().holds(now)) == (age, holds)


def test_what_a_time_costs_is_its_share_of_an_hour() -> None:
    # 0.8207 · 90 / 60 = 1.23105
    assert quoted().usd_for(timedelta(minutes=90)) == Decimal("1.2311")


@pytest.mark.parametrize(("compute", "disk", "names"), [(None, "0.08", "g6.xlarge"), ("0.8048", None, "gp3")])
def test_an_unknown_part_is_never_guessed(compute: str | None, disk: str | None, names: str) -> None:
    with pytest.raises(Price, match=names) as caught:
        quoted(compute, disk)

    assert caught.value.code == "price_unknown"


@pytest.mark.parametrize("limit", ["0.8207", "0.8208", "5"])
def test_a_price_at_or_below_the_limit_is_within(limit: str) -> None:
    quoted().require_within(Decimal(limit))


def test_a_price_above_the_limit_is_refused_with_both_numbers() -> None:
    with pytest.raises(Price, match=r"\$0.8207 an hour, above the limit of \$0.8206") as caught:
        quoted().require_within(Decimal("0.8206"))

    assert caught.value.field == "price_limit_usd_per_hour"


@pytest.mark.parametrize(
    ("exact", "billed"),
    [("0.00005", "0.0001"), ("0.00015", "0.0002"), ("0.00004999", "0.0000"), ("1", "1.0000")],
)
def test_halves_of_a_hundredth_cent_are_rounded_up(exact: str, billed: str) -> None:
    assert rounded(Decimal(exact)) == Decimal(billed)
