"""The worker's checks: a failed one is a result, and one that came too late proves nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensorant.domain.connections import CheckItem, CheckVerdict, ConnectionStatus
from tensorant.domain.errors import Credentials, ProviderError, ProviderFault, Storage, Throttled
from tensorant.domain.storages import S3_ABILITIES
from tensorant.ports import ComputeCheck
from tensorant.services.connection_checks import ConnectionChecker
from tests.support.fakes.compute import GOOD_CHECK
from tests.support.worlds import (
    AWS,
    AWS_SETTINGS,
    NOON,
    ORG,
    S3,
    World,
    aws_connection,
    later,
    s3_connection,
)


@pytest.fixture
def checker(world: World) -> ConnectionChecker:
    return ConnectionChecker(world.store, world.computes, world.storages, world.clock)


def test_a_good_check_stores_account_image_and_catalog(world: World, checker: ConnectionChecker) -> None:
    world.store.commit(
        aws_connection(status=ConnectionStatus.CHECKING, account_id=None, image=None, version=1)
    )
    world.clock.forward(minutes=1)

    checker.check(ORG, AWS)

    connection, catalog = world.store.connection(ORG, AWS), world.store.catalog(AWS)
    assert connection.status is ConnectionStatus.CONNECTED
    assert (connection.account_id, connection.image) == (GOOD_CHECK.account_id, GOOD_CHECK.image)
    assert connection.checked_at == later(minutes=1)
    assert catalog is not None
    assert (catalog.types, catalog.excluded) == (GOOD_CHECK.types, GOOD_CHECK.excluded)
    assert catalog.priced_at == later(minutes=1)
    assert world.compute.asked("ask") == []


def test_a_good_check_of_storage_stores_what_it_can_do(world: World, checker: ConnectionChecker) -> None:
    world.storage.abilities = replace(S3_ABILITIES, presigned=False)

    connection = checker.check(ORG, S3)

    assert connection.status is ConnectionStatus.CONNECTED
    assert connection.storage_abilities.presigned is False

    world.storage.trouble = [Storage("storage_failed", "no")]
    failed = checker.check(ORG, S3)
    assert failed.status is ConnectionStatus.FAILED
    assert failed.storage_abilities.presigned is False  # a check that could not look found nothing else


def test_a_failed_check_is_a_result_and_keeps_the_catalog(world: World, checker: ConnectionChecker) -> None:
    before = world.store.catalog(AWS)
    item = CheckItem(name="image", verdict=CheckVerdict.FAILED, seen="no such image", mend="Choose one.")
    world.compute.check_result = ComputeCheck(items=(item,), account_id=None, image=None)

    connection = checker.check(ORG, AWS)

    assert connection.status is ConnectionStatus.FAILED
    assert connection.checks == (item,)
    assert world.store.catalog(AWS) == before


def test_a_provider_that_cannot_be_opened_is_a_result(world: World, checker: ConnectionChecker) -> None:
    error = world.computes.trouble = Credentials("credentials_missing", "Not stored.", mend="Save them.")

    connection = checker.check(ORG, AWS)

    (item,) = connection.checks
    assert connection.status is ConnectionStatus.FAILED
    assert (item.seen, item.mend) == (error.message, error.mend)


@pytest.mark.parametrize(
    "error", [ProviderFault("no_answer", "None."), Throttled("RequestLimitExceeded", "Slow down.")]
)
@pytest.mark.parametrize("when", ["opening", "checking"])
def test_a_provider_that_does_not_answer_proves_nothing(
    world: World, checker: ConnectionChecker, error: ProviderError, when: str
) -> None:
    before = world.store.connection(ORG, AWS)
    world.store.commit(before.checking())
    if when == "opening":
        world.computes.trouble = error
    else:
        world.compute.fail_next("check", error)

    with pytest.raises(type(error)):
        checker.check(ORG, AWS)

    after = world.store.connection(ORG, AWS)
    assert (after.status, after.usable) == (ConnectionStatus.CONNECTED, True)
    assert after.checks[:-1] == before.checks
    assert (after.checks[-1].name, after.checks[-1].verdict) == ("unfinished", CheckVerdict.WARNING)
    assert after.checked_at == before.checked_at


def test_a_first_check_that_gets_no_answer_does_not_stay_under_way(
    world: World, checker: ConnectionChecker
) -> None:
    world.store.commit(world.store.connection(ORG, AWS).unproven().checking())
    world.compute.fail_next("check", ProviderFault("no_answer", "AWS did not answer."))

    with pytest.raises(ProviderFault):
        checker.check(ORG, AWS)

    after = world.store.connection(ORG, AWS)
    assert (after.status, after.usable) == (ConnectionStatus.FAILED, False)
    assert "AWS did not answer." in after.checks[-1].seen
    assert checker.check(ORG, AWS).status is ConnectionStatus.CONNECTED


def test_storage_is_checked_by_its_own_probe(world: World, checker: ConnectionChecker) -> None:
    assert checker.check(ORG, S3).status is ConnectionStatus.CONNECTED
    assert world.store.catalog(S3) is None


def test_a_change_in_between_is_read_again(world: World, checker: ConnectionChecker) -> None:
    world.store.before_next_commit(lambda: world.store.commit(aws_connection(name="renamed", version=1)))

    assert checker.check(ORG, AWS).name == "renamed"


def test_checking_twice_renews_the_catalog(world: World, checker: ConnectionChecker) -> None:
    checker.check(ORG, AWS)
    world.clock.forward(hours=1)
    checker.check(ORG, AWS)

    catalog = world.store.catalog(AWS)
    assert catalog is not None
    assert catalog.priced_at == later(hours=1)


# -- what came too late ------------------------------------------------------------------------------------


def test_a_check_of_other_settings_proves_nothing(world: World, checker: ConnectionChecker) -> None:
    elsewhere = replace(AWS_SETTINGS, region="eu-west-1")
    changed = aws_connection(version=1).changed(name="our GPUs", settings=elsewhere)
    world.compute.during_next("check", lambda: world.store.commit(changed))
    before = world.store.catalog(AWS)

    checker.check(ORG, AWS)

    assert world.store.connection(ORG, AWS) == replace(changed, version=2)
    assert world.store.catalog(AWS) == before


def test_a_check_with_other_credentials_proves_nothing(world: World, checker: ConnectionChecker) -> None:
    replaced = aws_connection(version=1).with_credentials("444455556666", expire_at=None)
    world.compute.during_next("check", lambda: world.store.commit(replaced))

    checker.check(ORG, AWS)

    after = world.store.connection(ORG, AWS)
    assert (after.status, after.account_id) == (ConnectionStatus.CHECKING, None)


def test_a_check_does_not_bring_a_removed_connection_back(world: World, checker: ConnectionChecker) -> None:
    removed = aws_connection(version=1).remove(at=NOON)
    world.compute.during_next("check", lambda: world.store.commit(removed))

    assert checker.check(ORG, AWS).removed
    assert checker.check(ORG, AWS).removed
    assert world.store.connection(ORG, AWS) == replace(removed, version=2)
    assert len(world.compute.calls) == 1


# -- temporary credentials ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hours", "status", "verdict"),
    [
        (25, ConnectionStatus.CONNECTED, CheckVerdict.OK),
        (23, ConnectionStatus.CONNECTED, CheckVerdict.WARNING),
        (-1, ConnectionStatus.FAILED, CheckVerdict.FAILED),
    ],
)
def test_a_check_tells_the_end_of_temporary_credentials(
    world: World, checker: ConnectionChecker, hours: int, status: ConnectionStatus, verdict: CheckVerdict
) -> None:
    expire_at = later(hours=hours)
    world.store.commit(
        aws_connection(credentials_expire_at=expire_at, version=1),
        s3_connection(credentials_expire_at=expire_at, version=1),
    )

    for connection in (checker.check(ORG, AWS), checker.check(ORG, S3)):
        assert connection.status is status
        assert (connection.checks[-1].name, connection.checks[-1].verdict) == ("expiry", verdict)
