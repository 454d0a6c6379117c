"""Connections: saved by their keepers, read by members."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tensorant.domain.connections import ConnectionStatus, CredentialKind, ManagedBy, Settings
from tensorant.domain.errors import Conflict, Forbidden, NotFound, ProviderFault
from tensorant.services.connections import ConnectionReader, SavedConnections
from tests.support.worlds import (
    ADMIN,
    AWS,
    AWS_SETTINGS,
    MEMBER,
    NOON,
    ORG,
    OWNER,
    S3,
    S3_SETTINGS,
    STRANGER,
    World,
    aws_connection,
    catalog,
    later,
)

SECRET = {"access_key_id": "AKIA", "secret_access_key": "very secret"}
ROLE = replace(
    AWS_SETTINGS,
    credentials=CredentialKind.ROLE,
    role_arn="arn:aws:iam::111122223333:role/tensorant-training",
)
OURS = replace(AWS_SETTINGS, credentials=CredentialKind.SAME_ACCOUNT)
PLATFORM: dict[str, Any] = {"managed_by": ManagedBy.PLATFORM}


@pytest.fixture
def saved(world: World) -> SavedConnections:
    return SavedConnections(world.store, world.secrets, world.workers, world.clock, world.ids)


@pytest.fixture
def reader(world: World) -> ConnectionReader:
    return ConnectionReader(world.store)


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


def test_temporary_credentials_are_stored_with_their_end(world: World, saved: SavedConnections) -> None:
    connection = saved.create(
        OWNER, ORG, name="GPUs", settings=AWS_SETTINGS, secret=SECRET, expire_at=later(hours=8)
    )

    assert world.store.connection(ORG, connection.id).credentials_expire_at == later(hours=8)


def test_a_role_gets_an_external_id_and_a_secret_without_content(
    world: World, saved: SavedConnections
) -> None:
    first = saved.create(OWNER, ORG, name="GPUs", settings=ROLE, secret={})
    second = saved.create(OWNER, ORG, name="GPUs", settings=ROLE, secret={})

    stored = world.store.connection(ORG, first.id).settings
    assert stored == replace(ROLE, external_id=f"{102:032}")
    assert first.settings != second.settings
    assert world.secrets.read(first.id) == {}


def test_keys_have_no_external_id(saved: SavedConnections) -> None:
    connection = saved.create(OWNER, ORG, name="GPUs", settings=AWS_SETTINGS, secret=SECRET)

    assert connection.settings == AWS_SETTINGS


# -- the platform's ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [AWS_SETTINGS, ROLE, OURS])
def test_a_platform_admin_makes_one_for_any_organization(
    world: World, saved: SavedConnections, settings: Settings
) -> None:
    connection = saved.create(ADMIN, ORG, name="shared", settings=settings, secret={}, **PLATFORM)

    assert world.store.connection(ORG, connection.id).managed_by is ManagedBy.PLATFORM
    assert world.workers.checks == [(ORG, connection.id)]


def test_an_unknown_organization_gets_none(saved: SavedConnections) -> None:
    with pytest.raises(NotFound):
        saved.create(ADMIN, "org-9", name="shared", settings=OURS, secret={}, **PLATFORM)


def test_an_owner_makes_none_for_the_platform(world: World, saved: SavedConnections) -> None:
    with pytest.raises(Forbidden) as caught:
        saved.create(OWNER, ORG, name="shared", settings=AWS_SETTINGS, secret=SECRET, **PLATFORM)

    assert caught.value.code == "platform_admin_only"
    assert world.secrets.secrets == {}


def test_an_owner_does_not_spend_the_deployment_s_own_account(world: World, saved: SavedConnections) -> None:
    with pytest.raises(Forbidden) as caught:
        saved.create(OWNER, ORG, name="ours", settings=OURS, secret={})

    assert (caught.value.code, caught.value.field) == ("same_account_by_platform_only", "credentials.kind")
    assert caught.value.mend
    assert world.secrets.secrets == {}


def test_a_platform_admin_is_not_an_owner(saved: SavedConnections) -> None:
    with pytest.raises(NotFound):
        saved.create(ADMIN, ORG, name="GPUs", settings=AWS_SETTINGS, secret=SECRET)
    with pytest.raises(NotFound):
        saved.check_again(ADMIN, ORG, AWS)


def test_only_its_admin_checks_the_platform_s(world: World, saved: SavedConnections) -> None:
    world.store.commit(aws_connection(**PLATFORM, version=1))

    for actor in (OWNER, MEMBER):
        with pytest.raises(Forbidden) as caught:
            saved.check_again(actor, ORG, AWS)
        assert caught.value.code == "platform_managed"
        assert caught.value.mend
    with pytest.raises(NotFound):
        saved.check_again(STRANGER, ORG, AWS)
    assert world.workers.checks == []

    assert saved.check_again(ADMIN, ORG, AWS).status is ConnectionStatus.CHECKING


def test_members_use_and_read_the_platform_s(world: World, reader: ConnectionReader) -> None:
    world.store.commit(aws_connection(**PLATFORM, version=1))

    assert reader.show(MEMBER, ORG, AWS).managed_by is ManagedBy.PLATFORM
    assert reader.catalog(MEMBER, ORG, AWS).types


# -- reading -----------------------------------------------------------------------------------------------


def test_a_platform_admin_reads_what_the_platform_keeps_and_nothing_else(
    world: World, reader: ConnectionReader
) -> None:
    world.store.commit(aws_connection(version=1, managed_by=ManagedBy.PLATFORM))

    assert reader.show(ADMIN, ORG, AWS).id == AWS
    with pytest.raises(NotFound):
        reader.show(ADMIN, ORG, S3)
    with pytest.raises(NotFound):
        reader.list(ADMIN, ORG)


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


def test_after_a_move_there_is_no_catalog_until_the_check(world: World, reader: ConnectionReader) -> None:
    world.store.commit(catalog(version=1).emptied())

    with pytest.raises(Conflict) as caught:
        reader.catalog(MEMBER, ORG, AWS)
    assert caught.value.code == "catalog_missing"


def test_a_removed_connection_is_not_there_for_people(
    world: World, reader: ConnectionReader, saved: SavedConnections
) -> None:
    world.store.commit(aws_connection(version=1).remove(at=NOON))

    assert [each.id for each in reader.list(MEMBER, ORG)] == [S3]
    with pytest.raises(NotFound):
        reader.show(MEMBER, ORG, AWS)
    with pytest.raises(NotFound):
        reader.catalog(MEMBER, ORG, AWS)
    with pytest.raises(NotFound):
        saved.check_again(OWNER, ORG, AWS)
    assert world.store.connection(ORG, AWS).removed
