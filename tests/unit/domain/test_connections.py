"""A connection after its check, and through its life."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tensorant.domain.connections import CheckItem, CheckVerdict, Connection, ConnectionStatus, CredentialKind
from tensorant.domain.errors import Conflict
from tests.support.worlds import (
    ACCOUNT,
    AWS_SETTINGS,
    IMAGE,
    NOON,
    S3_SETTINGS,
    aws_connection,
    catalog,
    later,
)

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


# -- its life ----------------------------------------------------------------------------------------------

CHECKED: dict[str, Any] = {
    "checks": (ITEM[OK],),
    "checked_at": NOON,
    "subnet_zones": {"subnet-1": "us-east-1a"},
}
ROLE_SETTINGS = replace(
    AWS_SETTINGS,
    credentials=CredentialKind.ROLE,
    role_arn=f"arn:aws:iam::{ACCOUNT}:role/tensorant-one",
    external_id="made-by-us",
)


def proves_nothing(connection: Connection) -> bool:
    """Nothing that an earlier check saw stands."""
    nothing = (connection.checks, connection.checked_at, connection.image, connection.subnet_zones)
    return nothing == ((), None, None, {}) and connection.status is ConnectionStatus.CHECKING


def test_other_settings_are_of_no_use_before_their_check() -> None:
    before = aws_connection(**CHECKED)

    after = before.changed(name="ours", settings=replace(AWS_SETTINGS, image_id="ami-0123456789abcdef1"))

    assert (after.name, after.settings) == ("ours", replace(AWS_SETTINGS, image_id="ami-0123456789abcdef1"))
    assert proves_nothing(after)
    assert not after.usable
    assert after.account_id == ACCOUNT
    assert after.generation == before.generation + 1


def test_another_name_changes_nothing_else() -> None:
    before = aws_connection(**CHECKED)

    assert before.changed(name="ours", settings=AWS_SETTINGS) == replace(before, name="ours")


@pytest.mark.parametrize(
    ("role_arn", "account_id"),
    [
        (f"arn:aws:iam::{ACCOUNT}:role/tensorant-two", ACCOUNT),
        ("arn:aws:iam::444455556666:role/tensorant-one", None),
    ],
)
def test_a_role_of_another_account_makes_the_account_unknown(role_arn: str, account_id: str | None) -> None:
    before = aws_connection(settings=ROLE_SETTINGS)

    after = before.changed(name=before.name, settings=replace(ROLE_SETTINGS, role_arn=role_arn))

    assert after.account_id == account_id
    assert proves_nothing(after)


def test_credentials_of_the_same_account_leave_what_was_seen() -> None:
    before = aws_connection(**CHECKED)

    after = before.with_credentials(ACCOUNT, expire_at=later(hours=8))

    assert after == replace(
        before, status=ConnectionStatus.CHECKING, credentials_expire_at=later(hours=8), generation=1
    )
    assert after.usable


def test_credentials_of_another_account_prove_nothing_yet() -> None:
    before = aws_connection(**CHECKED, credentials_expire_at=NOON)

    after = before.with_credentials("444455556666", expire_at=None)

    assert proves_nothing(after)
    assert (after.account_id, after.credentials_expire_at, after.usable) == (None, None, False)


def test_a_removed_connection_stays_removed() -> None:
    removed = aws_connection().remove(at=NOON)

    assert (removed.status, removed.removed_at, removed.usable) == (ConnectionStatus.REMOVED, NOON, False)
    assert removed.checking() == removed
    assert removed.checked((ITEM[OK],), at=later(minutes=1)) == removed
    assert removed.purged(at=later(minutes=20)).status is ConnectionStatus.REMOVED


@pytest.mark.parametrize(
    ("connection", "code"),
    [
        (aws_connection(status=ConnectionStatus.FAILED), "connection_not_ready"),
        (aws_connection().remove(at=NOON), "connection_removed"),
    ],
)
def test_what_can_not_be_used_says_why(connection: Connection, code: str) -> None:
    with pytest.raises(Conflict) as caught:
        connection.require_usable(named_by="connection_id")

    assert (caught.value.code, caught.value.field) == (code, "connection_id")
    assert caught.value.mend


def test_a_role_says_its_account() -> None:
    assert ROLE_SETTINGS.role_account == ACCOUNT
    assert AWS_SETTINGS.role_account is None


def test_a_catalog_that_was_emptied_knows_nothing() -> None:
    assert not catalog().empty
    assert catalog().emptied().empty
    assert catalog().emptied().find("g6.xlarge") is None


# -- temporary credentials ---------------------------------------------------------------------------------


def expiring(**after_noon: float) -> Connection:
    return aws_connection(credentials_expire_at=NOON + timedelta(**after_noon))


@pytest.mark.parametrize(
    ("connection", "codes", "verdict"),
    [
        (aws_connection(), [], None),
        (expiring(hours=24, seconds=1), [], OK),
        (expiring(hours=24), ["credentials_expire_soon"], WARNING),
        (expiring(seconds=1), ["credentials_expire_soon"], WARNING),
        (expiring(), ["credentials_expired"], FAILED),
        (expiring(hours=-8), ["credentials_expired"], FAILED),
    ],
)
def test_the_end_of_credentials_is_warned_of_a_day_before(
    connection: Connection, codes: list[str], verdict: CheckVerdict | None
) -> None:
    item = connection.expiry_item(NOON)

    assert [each.code for each in connection.warnings(NOON)] == codes
    assert (item.verdict if item else None) is verdict
    assert all(each.message and each.mend for each in connection.warnings(NOON))


def test_the_warning_says_when() -> None:
    (warning,) = expiring(hours=3).warnings(NOON)

    assert "expire at 2026-08-01 15:00 UTC" in warning.message


def test_a_removed_connection_warns_of_nothing() -> None:
    assert expiring().remove(at=NOON).warnings(NOON) == ()


def test_a_run_needs_credentials_that_outlast_it() -> None:
    connection = expiring(hours=3)

    connection.require_credentials_until(later(hours=3))
    aws_connection().require_credentials_until(later(days=3))
    with pytest.raises(Conflict) as caught:
        connection.require_credentials_until(later(hours=3, seconds=1))

    assert (caught.value.code, caught.value.field) == ("credentials_expire_early", "connection_id")


def test_storage_has_no_role() -> None:
    storage = aws_connection(settings=S3_SETTINGS)

    assert storage.changed(name="x", settings=replace(S3_SETTINGS, prefix="y")).account_id == ACCOUNT
