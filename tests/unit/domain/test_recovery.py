"""A kept machine that its owner starts again: for how long, and at what cost.

An hour of compute is $0.8048, one of disk $0.0159. The machine ran from noon to one, and starts again at three.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from tensorant.domain.costs import cost
from tensorant.domain.machines import (
    RECOVERY_WINDOW,
    Call,
    Disposition,
    Goal,
    Machine,
    MachineState,
    Observation,
    Seen,
    next_call,
)
from tests.support.worlds import NOON, later, machine

ONE, THREE = later(hours=1), later(hours=3)


def observed(before: Machine, state: Seen, *, at: datetime, started_at: datetime | None = None) -> Machine:
    return before.observed(Observation(state=state, started_at=started_at or before.started_at), at=at)


def stopped() -> Machine:
    rented = machine(instance_id="i-1", goal=Goal.STOPPED)
    running = observed(rented, Seen.RUNNING, at=NOON, started_at=NOON)
    return observed(running, Seen.STOPPED, at=ONE)


def restarted() -> Machine:
    return observed(stopped(), Seen.RUNNING, at=later(hours=3, seconds=20), started_at=THREE)


# -- the word and the window -------------------------------------------------------------------------------


@pytest.mark.parametrize("seen", [Seen.PENDING, Seen.RUNNING])
def test_a_kept_machine_that_starts_again_is_recovering(seen: Seen) -> None:
    again = observed(stopped(), seen, at=THREE, started_at=THREE)

    assert again.restarted
    assert again.state is MachineState.RECOVERING


@pytest.mark.parametrize("started_at", [NOON, ONE])
def test_what_started_before_the_stop_is_not_a_restart(started_at: datetime) -> None:
    late_word = observed(stopped(), Seen.RUNNING, at=THREE, started_at=started_at)

    assert not late_word.restarted
    assert late_word.state is MachineState.STOPPING


def test_a_machine_that_never_stopped_is_not_recovering() -> None:
    rented = machine(instance_id="i-1", goal=Goal.STOPPED)

    assert not observed(rented, Seen.RUNNING, at=THREE, started_at=THREE).restarted


@pytest.mark.parametrize(
    ("since_start", "shielded"), [("0:00:00", True), ("1:59:59", True), ("2:00:00", False)]
)
def test_a_restart_holds_off_a_stop_for_two_hours(since_start: str, *, shielded: bool) -> None:
    hours, minutes, seconds = map(int, since_start.split(":"))
    now = THREE + timedelta(hours=hours, minutes=minutes, seconds=seconds)

    assert restarted().shielded(now) is shielded
    assert timedelta(hours=2) == RECOVERY_WINDOW


@pytest.mark.parametrize("goal", Goal)
def test_a_shield_holds_off_a_stop_and_never_a_termination(goal: Goal) -> None:
    call = next_call(goal, Seen.RUNNING, shielded=True)

    assert call is (Call.TERMINATE if goal is Goal.GONE else None)


def test_a_machine_that_is_to_go_is_releasing_though_it_was_restarted() -> None:
    assert restarted().raised(Goal.GONE, Disposition.DISCARDED).state is MachineState.RELEASING


def test_each_stop_is_confirmed_anew() -> None:
    again = observed(restarted(), Seen.STOPPED, at=later(hours=4))

    assert stopped().confirmed_stopped_at == ONE
    assert again.confirmed_stopped_at == later(hours=4)
    assert observed(again, Seen.STOPPED, at=later(hours=9)).confirmed_stopped_at == later(hours=4)
    assert again.state is MachineState.RETAINED


def test_a_second_restart_begins_another_window() -> None:
    again = observed(restarted(), Seen.STOPPED, at=later(hours=4))

    third = observed(again, Seen.RUNNING, at=later(hours=7), started_at=later(hours=7))

    assert third.shielded(later(hours=8, minutes=59))
    assert not third.shielded(later(hours=9))


# -- its cost ----------------------------------------------------------------------------------------------


def test_both_running_periods_are_paid_and_the_disk_throughout() -> None:
    # 1 h and ½ h of compute: 1.2072; 3½ h of disk: 0.05565; together 1.26285, half up
    assert cost(restarted(), now=later(hours=3, minutes=30)) == Decimal("1.2629")


def test_between_them_only_the_disk_is_paid() -> None:
    # 0.8048 + 2 · 0.0159
    assert cost(stopped(), now=later(hours=2)) == Decimal("0.8366")


def test_each_start_is_billed_for_a_minute_at_least() -> None:
    brief = observed(restarted(), Seen.STOPPED, at=later(hours=3, seconds=30))

    # 3600 s and 60 s of compute: 0.8182133; 4 h of disk: 0.0636
    assert cost(brief, now=later(hours=4)) == Decimal("0.8818")


def test_a_period_that_nobody_saw_running_is_paid_until_it_was_seen_stopped() -> None:
    unseen = observed(stopped(), Seen.STOPPED, at=later(hours=3, minutes=20), started_at=THREE)

    # 1 h and 20 min of compute: 1.0730667; 4 h of disk: 0.0636
    assert cost(unseen, now=later(hours=4)) == Decimal("1.1367")


def test_a_stop_that_nobody_saw_is_paid_until_the_next_start() -> None:
    running = observed(machine(instance_id="i-1"), Seen.RUNNING, at=NOON, started_at=NOON)

    again = observed(running, Seen.RUNNING, at=later(hours=3, minutes=1), started_at=THREE)

    # 3½ h of compute: 2.8168; 3½ h of disk: 0.05565; together 2.87245, half up
    assert cost(again, now=later(hours=3, minutes=30)) == Decimal("2.8725")


def test_a_word_of_the_same_start_is_not_paid_twice() -> None:
    again = observed(restarted(), Seen.RUNNING, at=later(hours=3, minutes=10), started_at=THREE)

    assert again.ran_seconds_before == 3600
    assert again.first_started_at == NOON


def test_after_its_release_nothing_is_paid() -> None:
    gone = observed(restarted(), Seen.GONE, at=later(hours=3, minutes=30))

    # as at half past three, for good
    assert cost(gone, now=later(days=30)) == Decimal("1.2629")
