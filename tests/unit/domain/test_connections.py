"""A connection after its check."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant.domain.connections import CheckItem, CheckVerdict, ConnectionStatus
from tests.support.worlds import IMAGE, NOON, aws_connection, catalog

OK, WARNING, FAILED = CheckVerdict.OK, CheckVerdict.WARNING, CheckVerdict.FAILED


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ((OK, OK), ConnectionStatus.CONNECTED),
        ((OK, WARNING), ConnectionStatus.CONNECTED),
        ((OK, FAILED), ConnectionStatus.FAILED),
        ((FAILED, WARNING), ConnectionStatus.FAILED),
    ],
)
def test_one_failed_item_fails_the_check(
    verdicts: tuple[CheckVerdict, ...], status: ConnectionStatus
) -> None:
    items = tuple(CheckItem(name="some", verdict=verdict, seen="some") for verdict in verdicts)

    assert aws_connection().checking().checked(items, at=NOON).status is status


def test_what_an_earlier_check_proved_is_kept() -> None:
    checked = aws_connection().checked((), at=NOON)

    assert (checked.account_id, checked.image) == ("111122223333", IMAGE)


def test_a_catalog_finds_its_types() -> None:
    found = catalog().find("g5.xlarge")

    assert found is not None
    assert str(found.usd_per_hour) == "1.006"
    assert catalog().find("p5.48xlarge") is None


ITEM = {verdict: CheckItem(name="some", verdict=verdict, seen="some") for verdict in CheckVerdict}


@pytest.mark.parametrize(
    ("changes", "usable"),
    [
        ({"status": ConnectionStatus.CONNECTED}, True),
        ({"status": ConnectionStatus.FAILED}, False),
        ({"status": ConnectionStatus.CHECKING, "checked_at": None}, False),
        ({"status": ConnectionStatus.CHECKING, "checks": (ITEM[OK], ITEM[WARNING])}, True),
        ({"status": ConnectionStatus.CHECKING, "checks": (ITEM[OK], ITEM[FAILED])}, False),
    ],
)
def test_the_last_check_that_ended_decides(changes: dict[str, Any], *, usable: bool) -> None:
    assert aws_connection(**changes).usable is usable
