"""Connections: saved by an owner, checked by a worker, read by members."""

from __future__ import annotations

import pytest

from tensorant.domain.connections import CheckItem, CheckVerdict, ConnectionStatus, Settings
from tensorant.domain.errors import (
    Conflict,
    Credentials,
    Forbidden,
    NotFound,
    ProviderError,
    ProviderFault,
    Throttled,
)
from tensorant.ports import ComputeCheck
from tensorant.services.connections import ConnectionChecker, ConnectionReader, SavedConnections
from tests.support.fakes.compute import GOOD_CHECK
from tests.support.worlds import (
    AWS,
    AWS_SETTINGS,
    MEMBER,
    ORG,
    OWNER,
    S3,
    S3_SETTINGS,
    STRANGER,
    World,
    aws_connection,
    later,
)

SECRET = {"access_key_id": "AKIA", "secret_access_key": "very secret"}


@pytest.fixture
def saved(world: World) -> SavedConnections:
    return SavedConnections(world.store, world.secrets, world.workers, world.clock, world.ids)


@pytest.fixture
def reader(world: World) -> ConnectionReader:
    return ConnectionReader(world.store)


@pytest.fixture
def checker(world: World) -> ConnectionChecker:
    return ConnectionChecker(world.store, world.computes, world.storages, world.clock)


def test_an_owner_saves_a_connection_and_its_check_starts(world: World, saved: SavedConnections) -> None:
    connection = saved.create(OWNER, ORG, name="GPUs", settings=AWS_SETTINGS, secret=SECRET)

    assert connection.status is ConnectionStatus.CHECKING
    assert world.store.connection(ORG, connection.id).settings == AWS_SETTINGS
    assert world.secrets.read(connection.id) == SECRET
    assert world.workers.checks == [(ORG, connection.id)]


def test_the_record_holds_no_credentials(world: World, saved: SavedConnections) -> None:
    connection = saved.create(OWNER, ORG, name="GPUs", settings=AWS_SETTINGS, secret=SECRET)

    assert "very secret" not in repr(world.store.connection(ORG, connection.id))


def test_a_connection_never_stands_without_its_secret(world: World, saved: SavedConnections) -> None:
    world.store.fail_next_commit(ProviderFault("record_failed", "The table did not answer."))

    with pytest.raises(ProviderFault):
        saved.create(OWNER, ORG, name="GPUs", settings=AWS_SETTINGS, secret=SECRET)

    assert list(world.secrets.secrets.values()) == [SECRET]
    assert world.workers.checks == []


def test_a_member_may_not_save_one(world: World, saved: SavedConnections) -> None:
    with pytest.raises(Forbidden):
        saved.create(MEMBER, ORG, name="GPUs", settings=AWS_SETTINGS, secret=SECRET)
    assert world.secrets.secrets == {}


def test_a_stranger_finds_no_organization(saved: SavedConnections, reader: ConnectionReader) -> None:
    with pytest.raises(NotFound):
        saved.create(STRANGER, ORG, name="GPUs", settings=AWS_SETTINGS, secret=SECRET)
    with pytest.raises(NotFound):
        saved.check_again(STRANGER, ORG, AWS)
    with pytest.raises(NotFound):
        reader.list(STRANGER, ORG)


def test_a_member_may_not_check_one_again(world: World, saved: SavedConnections) -> None:
    with pytest.raises(Forbidden):
        saved.check_again(MEMBER, ORG, AWS)
    assert world.workers.checks == []


@pytest.mark.parametrize(("settings", "id_"), [(AWS_SETTINGS, "conn-aws-101"), (S3_SETTINGS, "conn-s3-101")])
def test_an_id_says_its_kind(saved: SavedConnections, settings: Settings, id_: str) -> None:
    assert saved.create(OWNER, ORG, name="ours", settings=settings, secret=SECRET).id == id_


def test_checking_again_is_marked_and_started(world: World, saved: SavedConnections) -> None:
    assert saved.check_again(OWNER, ORG, AWS).status is ConnectionStatus.CHECKING
    assert world.workers.checks == [(ORG, AWS)]


# -- the worker --------------------------------------------------------------------------------------------


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
    if when == "opening":
        world.computes.trouble = error
    else:
        world.compute.fail_next("check", error)

    with pytest.raises(type(error)):
        checker.check(ORG, AWS)

    assert world.store.connection(ORG, AWS) == before


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


# -- reading -----------------------------------------------------------------------------------------------


def test_members_read_connections_and_their_catalog(reader: ConnectionReader) -> None:
    assert [each.id for each in reader.list(MEMBER, ORG)] == [AWS, S3]
    assert reader.show(MEMBER, ORG, AWS).id == AWS
    assert reader.catalog(MEMBER, ORG, AWS).find("g6.xlarge") is not None


def test_storage_has_no_gpus(reader: ConnectionReader) -> None:
    with pytest.raises(NotFound):
        reader.catalog(MEMBER, ORG, S3)


def test_before_the_first_check_there_is_no_catalog(world: World, reader: ConnectionReader) -> None:
    world.store.commit(aws_connection(id="conn-new"))

    with pytest.raises(Conflict) as caught:
        reader.catalog(MEMBER, ORG, "conn-new")
    assert caught.value.code == "catalog_missing"


def test_other_credentials_are_stored_and_checked(world: World, saved: SavedConnections) -> None:
    other = {"access_key_id": "AKIB", "secret_access_key": "another secret"}

    connection = saved.replace_credentials(OWNER, ORG, AWS, secret=other)

    assert world.secrets.read(AWS) == other
    assert connection.status is ConnectionStatus.CHECKING
    assert world.workers.checks == [(ORG, AWS)]


def test_only_an_owner_replaces_credentials(world: World, saved: SavedConnections) -> None:
    with pytest.raises(Forbidden):
        saved.replace_credentials(MEMBER, ORG, AWS, secret=SECRET)

    assert world.secrets.secrets == {}
