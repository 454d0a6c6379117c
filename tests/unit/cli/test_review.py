"""A review: the price with its parts, the types in turn, the quota, and what stands against launching."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.support.command_line import (
    ORG,
    ScriptedApi,
    Terminal,
    obstacle,
    quota,
    quote,
    review,
    reviewed,
    run,
    squeezed,
    status,
)

REVIEW = f"GET {ORG}/runs/run-1/review"
SHOW = f"GET {ORG}/runs/run-1"
LAUNCH = f"POST {ORG}/runs/run-1/launch"
POLICY_HIDES_QUOTAS = "The connection's policy does not let quotas be read."
DISK_WARNING = obstacle(
    code="connection_subnets",
    message="subnet-1 assigns public addresses; Tensorant's machines get none.",
    mend="Give the subnet a NAT route.",
    field="connection_id",
    blocking=False,
)


def shown(terminal: Terminal, api: ScriptedApi, answer: object) -> list[str]:
    api.answer(REVIEW, answer)
    result = terminal.run("runs", "review", "run-1")
    assert result.exit_code == 0
    return squeezed(result.stdout)


def test_a_price_is_shown_with_its_parts_its_age_and_what_is_not_in_it(
    terminal: Terminal, api: ScriptedApi
) -> None:
    assert shown(terminal, api, review()) == [
        "Run run-1 (First)",
        "Type g6.xlarge, asked for first",
        "Price $0.8138/h, within the limit of $1.5000/h",
        "compute $0.8048/h g6.xlarge, Linux, on demand",
        "disk $0.0090/h 82 GiB of gp3, over 730 hours",
        "Not included NAT gateway, taxes",
        "Priced 2026-03-01 12:00:00 UTC, 3 s ago",
        "Time limit 1 h 30 min",
        "At most $1.2207 if it runs to its time limit",
        "Quota 4 vCPUs needed, 56 free: 8 of 64 in use (G and VT, L-DB2E81BA)",
    ]


def test_other_types_are_shown_in_the_order_in_which_they_are_asked_for(
    terminal: Terminal, api: ScriptedApi
) -> None:
    first = quote()
    second = quote(instance_type="g5.xlarge", usd_per_hour=Decimal("1.0150"))
    third = quote(instance_type="g6e.xlarge", usd_per_hour=Decimal("1.8700"))
    quotes = [
        reviewed(first, within_limit=True),
        reviewed(second, within_limit=True),
        reviewed(third, within_limit=False),
    ]

    lines = shown(terminal, api, review(quotes=quotes))

    assert lines[-4:] == [
        "Types in turn Price",
        "g6.xlarge $0.8138/h within the limit",
        "g5.xlarge $1.0150/h within the limit",
        "g6e.xlarge $1.8700/h above the limit: passed over",
    ]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"limit": None, "in_use": None, "headroom": None, "suffices": None}
            | {"unknown_because": POLICY_HIDES_QUOTAS},
            f"Quota unknown: {POLICY_HIDES_QUOTAS}",
        ),
        (
            {"in_use": 62, "headroom": 2, "suffices": False},
            "Quota NOT ENOUGH: 4 vCPUs needed, 2 free: 62 of 64 in use (G and VT, L-DB2E81BA)",
        ),
        (
            {"limit": 0, "in_use": 0, "headroom": 0, "suffices": False},
            "Quota NOT ENOUGH: 4 vCPUs needed, 0 free: 0 of 0 in use (G and VT, L-DB2E81BA)",
        ),
    ],
)
def test_a_quota_is_told_as_far_as_it_is_known(
    terminal: Terminal, api: ScriptedApi, changes: dict[str, object], line: str
) -> None:
    assert line in shown(terminal, api, review(quota=quota(**changes)))


def test_what_blocks_is_told_before_what_only_warns(terminal: Terminal, api: ScriptedApi) -> None:
    lines = shown(terminal, api, review(DISK_WARNING, obstacle()))

    assert lines[-5:] == [
        "Problem What",
        "blocks g6.xlarge costs $1.6000 an hour, above the limit of $1.50.",
        "Mend: Raise the run's price limit or choose a cheaper GPU type.",
        "warning subnet-1 assigns public addresses; Tensorant's machines get none.",
        "Mend: Give the subnet a NAT route.",
    ]


def test_a_launch_tells_everything_that_blocks_it(terminal: Terminal, api: ScriptedApi) -> None:
    expiring = obstacle(
        code="credentials_expire_early", message="The credentials expire early.", mend="Rotate."
    )
    api.answer(SHOW, status("draft", run=run(launched_at=None)))
    api.answer(REVIEW, review(DISK_WARNING, obstacle(), expiring))

    result = terminal.run("runs", "launch", "run-1", "--yes")

    assert result.exit_code == 1
    assert [line for line in result.stderr.splitlines() if line.startswith("Error")] == [
        "Error (price_limit_usd_per_hour): g6.xlarge costs $1.6000 an hour, above the limit of $1.50.",
        "Error (price_limit_usd_per_hour): The credentials expire early.",
    ]
    assert LAUNCH not in api.calls()


def test_a_warning_does_not_stop_a_launch(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, status("draft", run=run(launched_at=None)))
    api.answer(REVIEW, review(DISK_WARNING))
    api.answer(LAUNCH, run(), status=202)

    result = terminal.run("runs", "launch", "run-1", "--yes")

    assert result.exit_code == 0
    assert LAUNCH in api.calls()
