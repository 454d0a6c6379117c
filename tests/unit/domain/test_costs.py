"""What a machine has cost, worked out by hand from $0.8048 of compute and $0.0159 of disk an hour."""

from __future__ import annotations

from decimal import Decimal

from tensorant.domain.costs import cost
from tests.support.worlds import NOON, later, machine


def test_a_machine_that_never_started_costs_nothing() -> None:
    assert cost(machine(), now=later(hours=5)) == 0


def test_a_running_machine_costs_compute_and_disk_until_now() -> None:
    # half an hour: 0.4024 + 0.00795 = 0.41035, half up
    assert cost(machine(started_at=NOON), now=later(minutes=30)) == Decimal("0.4104")


def test_a_start_is_billed_for_a_minute_at_least() -> None:
    # 60 s of compute 0.0134133 and 10 s of disk 0.0000442
    assert cost(machine(started_at=NOON), now=later(seconds=10)) == Decimal("0.0135")


def test_a_stopped_machine_costs_its_disk() -> None:
    retained = machine(started_at=NOON, ran_until=later(hours=1))

    # one hour of compute 0.8048, ten hours of disk 0.159
    assert cost(retained, now=later(hours=10)) == Decimal("0.9638")


def test_a_released_machine_costs_no_more() -> None:
    released = machine(started_at=NOON, ran_until=later(hours=1), confirmed_gone_at=later(hours=2))

    # 0.8048 + 2 · 0.0159
    assert cost(released, now=later(days=365)) == Decimal("0.8366")


def test_a_clock_behind_the_providers_costs_the_minimum() -> None:
    # the provider's start lies after our now: a minute of compute, no disk
    assert cost(machine(started_at=later(seconds=5)), now=NOON) == Decimal("0.0134")
