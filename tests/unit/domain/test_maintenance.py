"""Scheduled changes: what becomes of the disk, and which warnings still stand."""

from __future__ import annotations

import pytest

from tensorant.domain.machines import Machine, Seen
from tensorant.domain.maintenance import Consequence, ScheduledChange, standing_warnings
from tests.support.worlds import later, machine

PERSISTENT = "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"


def change(code: str = PERSISTENT) -> ScheduledChange:
    return ScheduledChange(code=code, starts_at=later(days=1), instance_ids=("i-1",))


@pytest.mark.parametrize(
    ("code", "consequence"),
    [
        (PERSISTENT, Consequence.STOPS),
        ("AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_EXPEDITED", Consequence.STOPS),
        ("AWS_EC2_INSTANCE_STOP_SCHEDULED", Consequence.STOPS),
        ("AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", Consequence.ENDS),
        ("AWS_EC2_INSTANCE_RETIREMENT_EXPEDITED", Consequence.ENDS),
        ("AWS_EC2_INSTANCE_TERMINATION_SCHEDULED", Consequence.ENDS),
        ("AWS_EC2_INSTANCE_REBOOT_FLEXIBLE_MAINTENANCE_SCHEDULED", Consequence.DISTURBS),
        ("AWS_EC2_PERSISTENT_INSTANCE_POWER_MAINTENANCE_SCHEDULED", Consequence.DISTURBS),
        ("AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED", Consequence.DISTURBS),
        ("AWS_EC2_SOMETHING_NEW", Consequence.DISTURBS),
    ],
)
def test_a_code_says_what_becomes_of_the_machine(code: str, consequence: Consequence) -> None:
    assert change(code).consequence is consequence


@pytest.mark.parametrize(
    ("code", "what", "mend"),
    [
        (
            PERSISTENT,
            "will stop the machine i-1 from 2026-08-02 12:00 UTC on; its disk is kept.",
            "recover its",
        ),
        (
            "AWS_EC2_INSTANCE_TERMINATION_SCHEDULED",
            "will terminate the machine i-1 from 2026-08-02 12:00 UTC on, and its disk goes with it.",
            "cancel it with its output kept",
        ),
        (
            "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED",
            "will work on the host of the machine i-1 from 2026-08-02 12:00 UTC on: it may restart.",
            "does not go on",
        ),
    ],
)
def test_a_warning_says_what_when_and_what_to_do(code: str, what: str, mend: str) -> None:
    message = change(code).warning(machine(instance_id="i-1"), at=later()).message

    assert what in message
    assert mend in message
    assert message.endswith(f"(AWS Health: {code})")


def test_a_change_without_a_time_says_so() -> None:
    open_change = ScheduledChange(code=PERSISTENT, starts_at=None, instance_ids=())

    assert "at a time not yet known" in open_change.warning(machine(instance_id="i-1"), at=later()).message


WARNED_AT = later(hours=1)


@pytest.mark.parametrize(
    ("concerned", "stands"),
    [
        (machine(instance_id="i-1", seen=Seen.RUNNING), True),
        (machine(instance_id="i-1", confirmed_gone_at=later(hours=2)), False),
        (machine(instance_id="i-1", seen=Seen.STOPPED, confirmed_stopped_at=later(hours=2)), False),
        (machine(instance_id="i-1", seen=Seen.RUNNING, confirmed_stopped_at=later(minutes=30)), True),
    ],
    ids=["running", "gone", "stopped since", "started again before it was warned"],
)
def test_a_warning_stands_until_the_machine_has_left_its_host(concerned: Machine, *, stands: bool) -> None:
    warning = change().warning(concerned, at=WARNED_AT)

    assert standing_warnings([warning], [concerned]) == ((warning,) if stands else ())
