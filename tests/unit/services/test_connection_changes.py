"""Changing a connection: nothing that depends on it is cut off, and what is wrong stores nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from tensorant.domain.connections import Connection, ConnectionStatus, CredentialKind, ManagedBy
from tensorant.domain.errors import Conflict, Forbidden, Invalid, NotFound, ProviderFault
from tensorant.domain.machines import Disposition, Goal, Seen
from tensorant.domain.runs import Outcome
from tensorant.services.connection_changes import ConnectionChanges
from tests.support.worlds import (
    ACCOUNT,
    ADMIN,
    AWS,
    AWS_SETTINGS,
    MEMBER,
    NOON,
    ORG,
    OWNER,
    S3,
    STRANGER,
    World,
    aws_connection,
    later,
)

OTHER = "444455556666"
OLD = {"access_key_id": "AKIAOLD", "secret_access_key": "old secret"}
SAME = {"access_key_id": "AKIASAME", "secret_access_key": "same account's"}
FOREIGN = {"access_key_id": "AKIAFOREIGN", "secret_access_key": "other account's"}
UNKNOWN = {"access_key_id": "AKIANOBODY", "secret_access_key": "nobody's"}
ROLE = replace(
    AWS_SETTINGS,
    credentials=CredentialKind.ROLE,
    role_arn=f"arn:aws:iam::{ACCOUNT}:role/tensorant-one",
    external_id="made-by-us",
)
FOREIGN_ROLE = f"arn:aws:iam::{OTHER}:role/tensorant-one"
RETAINED: dict[str, Any] = {"goal": Goal.STOPPED}


@pytest.fixture
def changes(world: World) -> ConnectionChanges:
    world.secrets.write(AWS, OLD)
    world.accounts.known |= {"AKIASAME": ACCOUNT, "AKIAFOREIGN": OTHER}
    return ConnectionChanges(world.store, world.secrets, world.accounts, world.workers)


def present(world: World) -> Connection:
    return world.store.connection(ORG, AWS)


def nothing_happened(world: World, before: Connection) -> bool:
    return present(world) == before and world.secrets.read(AWS) == OLD and world.workers.checks == []


def retained(world: World, **changes: Any) -> None:
    """A run that needs recovery keeps its machine."""
    world.rented(Seen.STOPPED, **RETAINED, **changes)
    world.change_run(outcome=Outcome.NEEDS_RECOVERY)


# -- credentials -------------------------------------------------------------------------------------------


def test_other_keys_of_the_account_are_stored_and_checked(world: World, changes: ConnectionChanges) -> None:
    connection = changes.replace_credentials(OWNER, ORG, AWS, secret=SAME, expire_at=later(hours=8))

    assert world.secrets.read(AWS) == SAME
    assert connection.status is ConnectionStatus.CHECKING
    assert (connection.usable, connection.account_id) == (True, ACCOUNT)
    assert present(world).credentials_expire_at == later(hours=8)
    assert world.workers.checks == [(ORG, AWS)]


def test_keys_of_a_user_have_no_end(world: World, changes: ConnectionChanges) -> None:
    world.store.commit(aws_connection(credentials_expire_at=NOON, version=1))

    assert changes.replace_credentials(OWNER, ORG, AWS, secret=SAME).credentials_expire_at is None


def test_keys_that_aws_does_not_know_are_named_and_not_stored(
    world: World, changes: ConnectionChanges
) -> None:
    before = present(world)

    with pytest.raises(Invalid) as caught:
        changes.replace_credentials(OWNER, ORG, AWS, secret=UNKNOWN)

    assert (caught.value.field, caught.value.mend) == ("access_key_id", "Check the access key id.")
    assert nothing_happened(world, before)


def test_without_an_answer_from_aws_nothing_is_stored(world: World, changes: ConnectionChanges) -> None:
    before = present(world)
    world.accounts.trouble.append(ProviderFault("no_answer", "None.", mend="Try again."))

    with pytest.raises(ProviderFault):
        changes.replace_credentials(OWNER, ORG, AWS, secret=SAME)

    assert nothing_happened(world, before)


def test_unused_it_may_move_to_another_account(world: World, changes: ConnectionChanges) -> None:
    connection = changes.replace_credentials(OWNER, ORG, AWS, secret=FOREIGN)

    assert world.secrets.read(AWS) == FOREIGN
    assert (connection.account_id, connection.image, connection.usable) == (None, None, False)
    assert world.workers.checks == [(ORG, AWS)]


@pytest.mark.parametrize("state", ["launched", "asked", "running", "retained"])
def test_in_use_another_account_is_refused(world: World, changes: ConnectionChanges, state: str) -> None:
    {
        "launched": world.launched,
        "asked": world.asked,
        "running": world.rented,
        "retained": lambda: retained(world),
    }[state]()
    before = present(world)

    with pytest.raises(Conflict) as caught:
        changes.replace_credentials(OWNER, ORG, AWS, secret=FOREIGN)

    assert (caught.value.code, caught.value.field) == ("other_account", "access_key_id")
    assert "run-1" in caught.value.message
    assert ACCOUNT in caught.value.mend
    assert nothing_happened(world, before)


@pytest.mark.parametrize("state", ["launched", "asked", "running", "retained"])
def test_in_use_other_keys_of_the_account_are_taken(
    world: World, changes: ConnectionChanges, state: str
) -> None:
    {
        "launched": world.launched,
        "asked": world.asked,
        "running": world.rented,
        "retained": lambda: retained(world),
    }[state]()

    assert changes.replace_credentials(OWNER, ORG, AWS, secret=SAME).usable
    assert world.secrets.read(AWS) == SAME


def test_the_way_back_to_the_account_of_a_machine_is_open(world: World, changes: ConnectionChanges) -> None:
    world.compute.account_id = OTHER
    retained(world, account_id=OTHER)

    connection = changes.replace_credentials(OWNER, ORG, AWS, secret=FOREIGN)

    assert world.secrets.read(AWS) == FOREIGN
    assert not connection.usable
    with pytest.raises(Conflict):
        changes.replace_credentials(OWNER, ORG, AWS, secret=SAME)


def test_a_machine_that_is_gone_holds_nobody(world: World, changes: ConnectionChanges) -> None:
    world.rented(
        Seen.GONE,
        goal=Goal.GONE,
        disposition=Disposition.VERIFIED,
    )
    world.change_run(outcome=Outcome.SUCCEEDED)

    changes.replace_credentials(OWNER, ORG, AWS, secret=FOREIGN)

    assert world.secrets.read(AWS) == FOREIGN


def test_an_ask_with_the_old_credentials_can_not_slip_in_between(
    world: World, changes: ConnectionChanges
) -> None:
    read = present(world)
    seen: list[bool] = []
    write = world.secrets.write

    def written(connection_id: str, secret: Any) -> None:
        with pytest.raises(Conflict):  # conditioned on what it has read
            world.store.commit(unchanged=[read])
        seen.append(present(world).usable)
        write(connection_id, secret)

    world.secrets.write = written  # type: ignore[method-assign]

    changes.replace_credentials(OWNER, ORG, AWS, secret=FOREIGN)

    assert seen == [False]


def test_a_run_that_starts_meanwhile_is_not_overlooked(world: World, changes: ConnectionChanges) -> None:
    def ask() -> None:
        world.asked()
        world.store.commit(present(world))  # so that the commit that was under way has to read again

    world.store.before_next_commit(ask)

    with pytest.raises(Conflict) as caught:
        changes.replace_credentials(OWNER, ORG, AWS, secret=FOREIGN)

    assert caught.value.code == "other_account"
    assert world.secrets.read(AWS) == OLD


def test_what_a_check_saw_of_the_old_credentials_meanwhile_is_dropped(
    world: World, changes: ConnectionChanges
) -> None:
    write = world.secrets.write

    def written(connection_id: str, secret: Any) -> None:
        write(connection_id, secret)
        late = present(world).checked((), at=NOON, account_id=ACCOUNT)
        world.store.commit(late)

    world.secrets.write = written  # type: ignore[method-assign]

    connection = changes.replace_credentials(OWNER, ORG, AWS, secret=FOREIGN)

    assert (connection.status, connection.account_id) == (ConnectionStatus.CHECKING, None)
    assert not connection.usable


def test_credentials_that_could_not_be_stored_are_checked_all_the_same(
    world: World, changes: ConnectionChanges
) -> None:
    def unanswered(_connection_id: str, _secret: Any) -> None:
        raise ProviderFault("secret_failed", "Secrets Manager did not answer.")

    world.secrets.write = unanswered  # type: ignore[method-assign]

    with pytest.raises(ProviderFault):
        changes.replace_credentials(OWNER, ORG, AWS, secret=FOREIGN)

    # whether they were stored is not known: without a check it would be checking for ever
    assert (present(world).status, present(world).usable) == (ConnectionStatus.CHECKING, False)
    assert world.workers.checks == [(ORG, AWS)]


@pytest.mark.parametrize(
    ("old_end", "new_end", "counts"),
    [
        (None, later(hours=8), later(hours=8)),
        (later(hours=4), later(hours=8), later(hours=4)),
        (later(hours=4), None, later(hours=4)),
        (None, None, None),
    ],
)
def test_until_it_is_certain_whose_are_stored_the_earlier_end_counts(
    world: World,
    changes: ConnectionChanges,
    old_end: datetime | None,
    new_end: datetime | None,
    counts: datetime | None,
) -> None:
    world.store.commit(aws_connection(version=1, credentials_expire_at=old_end))
    write = world.secrets.write

    def written_and_died(connection_id: str, secret: Any) -> None:
        write(connection_id, secret)
        raise ProviderFault("secret_failed", "Secrets Manager did not answer.")

    world.secrets.write = written_and_died  # type: ignore[method-assign]

    with pytest.raises(ProviderFault):
        changes.replace_credentials(OWNER, ORG, AWS, secret=SAME, expire_at=new_end)

    assert present(world).credentials_expire_at == counts


def test_of_two_who_replace_them_at_once_one_is_told(world: World, changes: ConnectionChanges) -> None:
    write = world.secrets.write

    def written(connection_id: str, secret: Any) -> None:
        world.secrets.write = write  # type: ignore[method-assign]
        changes.replace_credentials(OWNER, ORG, AWS, secret=SAME, expire_at=later(hours=8))
        write(connection_id, secret)

    world.secrets.write = written  # type: ignore[method-assign]

    with pytest.raises(Conflict) as caught:
        changes.replace_credentials(OWNER, ORG, AWS, secret=FOREIGN)

    assert caught.value.code == "credentials_in_doubt"
    assert world.workers.checks == [(ORG, AWS)] * 2  # the second finds out whose are stored
    changes.replace_credentials(OWNER, ORG, AWS, secret=SAME)
    assert world.secrets.read(AWS) == SAME


@pytest.mark.parametrize("kind", [CredentialKind.ROLE, CredentialKind.SAME_ACCOUNT])
def test_what_has_no_keys_gets_none(world: World, changes: ConnectionChanges, kind: CredentialKind) -> None:
    world.store.commit(aws_connection(settings=replace(ROLE, credentials=kind), version=1))
    before = present(world)

    with pytest.raises(Conflict) as caught:
        changes.replace_credentials(OWNER, ORG, AWS, secret=SAME)

    assert caught.value.code == "no_keys"
    assert nothing_happened(world, before)


def test_storage_keys_are_replaced_whatever_uses_them(world: World, changes: ConnectionChanges) -> None:
    world.rented()

    connection = changes.replace_credentials(OWNER, ORG, S3, secret=UNKNOWN)

    assert world.secrets.read(S3) == UNKNOWN
    assert connection.status is ConnectionStatus.CHECKING
    assert world.accounts.asked == []


# -- settings ----------------------------------------------------------------------------------------------


def test_other_settings_are_stored_and_checked(world: World, changes: ConnectionChanges) -> None:
    subnets = ("subnet-0000000b", "subnet-0000000a")

    connection = changes.change(
        OWNER,
        ORG,
        AWS,
        {"name": "ours", "subnet_ids": subnets, "key_name": "olga's", "image_id": "ami-00000001"},
    )

    settings = replace(AWS_SETTINGS, subnet_ids=subnets, key_name="olga's", image_id="ami-00000001")
    assert (present(world).name, present(world).settings) == ("ours", settings)
    assert (connection.status, connection.image, connection.usable) == (
        ConnectionStatus.CHECKING,
        None,
        False,
    )
    assert connection.account_id == ACCOUNT
    assert world.workers.checks == [(ORG, AWS)]
    assert world.store.catalog(AWS) is not None


def test_a_key_pair_can_be_taken_away(world: World, changes: ConnectionChanges) -> None:
    world.store.commit(aws_connection(settings=replace(AWS_SETTINGS, key_name="olga's"), version=1))

    changes.change(OWNER, ORG, AWS, {"key_name": None})

    assert present(world).settings == AWS_SETTINGS


@pytest.mark.parametrize("connection_id", [AWS, S3])
def test_another_name_needs_no_check(world: World, changes: ConnectionChanges, connection_id: str) -> None:
    before = world.store.connection(ORG, connection_id)

    changes.change(OWNER, ORG, connection_id, {"name": "renamed"})

    assert world.store.connection(ORG, connection_id) == replace(before, name="renamed", version=2)
    assert world.workers.checks == []


def test_what_is_as_it_was_needs_no_check(world: World, changes: ConnectionChanges) -> None:
    changes.change(OWNER, ORG, AWS, {"region": "us-east-1"})

    assert present(world).usable
    assert world.workers.checks == []


def test_a_move_to_another_region_forgets_the_catalog(world: World, changes: ConnectionChanges) -> None:
    changes.change(OWNER, ORG, AWS, {"region": "eu-west-1"})

    catalog = world.store.catalog(AWS)
    assert catalog is not None
    assert catalog.empty


@pytest.mark.parametrize("state", ["launched", "running", "retained"])
def test_in_use_it_does_not_move(world: World, changes: ConnectionChanges, state: str) -> None:
    {"launched": world.launched, "running": world.rented, "retained": lambda: retained(world)}[state]()
    before = present(world)

    with pytest.raises(Conflict) as caught:
        changes.change(OWNER, ORG, AWS, {"region": "eu-west-1", "name": "moved"})

    assert (caught.value.code, caught.value.field) == ("connection_in_use", "region")
    assert "can't be moved to eu-west-1: " in caught.value.message
    assert nothing_happened(world, before)


def test_in_use_the_rest_may_change(world: World, changes: ConnectionChanges) -> None:
    world.rented()

    changes.change(OWNER, ORG, AWS, {"image_id": "ami-00000001"})

    assert world.workers.checks == [(ORG, AWS)]


def test_in_use_a_role_stays_in_its_account(world: World, changes: ConnectionChanges) -> None:
    world.store.commit(aws_connection(settings=ROLE, version=1))
    retained(world)
    before = present(world)

    with pytest.raises(Conflict) as caught:
        changes.change(OWNER, ORG, AWS, {"role_arn": FOREIGN_ROLE})
    assert (caught.value.code, caught.value.field) == ("other_account", "role_arn")
    assert nothing_happened(world, before)

    other_role = f"arn:aws:iam::{ACCOUNT}:role/tensorant-two"
    changes.change(OWNER, ORG, AWS, {"role_arn": other_role})
    assert present(world).settings == replace(ROLE, role_arn=other_role)


def test_unused_a_role_of_another_account_keeps_the_external_id(
    world: World, changes: ConnectionChanges
) -> None:
    world.store.commit(aws_connection(settings=ROLE, version=1))

    changes.change(OWNER, ORG, AWS, {"role_arn": FOREIGN_ROLE})

    assert present(world).settings == replace(ROLE, role_arn=FOREIGN_ROLE)
    assert (present(world).account_id, present(world).usable) == (None, False)


@pytest.mark.parametrize(
    ("connection_id", "sent", "code", "field"),
    [
        (AWS, {"role_arn": FOREIGN_ROLE}, "no_role", "role_arn"),
        (S3, {"name": "x", "region": "eu-west-1"}, "not_changeable", "region"),
    ],
)
def test_what_a_connection_does_not_have_can_not_change(
    world: World, changes: ConnectionChanges, connection_id: str, sent: dict[str, Any], code: str, field: str
) -> None:
    before = world.store.connection(ORG, connection_id)

    with pytest.raises(Invalid) as caught:
        changes.change(OWNER, ORG, connection_id, sent)

    assert (caught.value.code, caught.value.field) == (code, field)
    assert world.store.connection(ORG, connection_id) == before


# -- who may ---------------------------------------------------------------------------------------------


def test_a_member_changes_nothing(world: World, changes: ConnectionChanges) -> None:
    before = present(world)

    with pytest.raises(Forbidden):
        changes.replace_credentials(MEMBER, ORG, AWS, secret=SAME)
    with pytest.raises(Forbidden):
        changes.change(MEMBER, ORG, AWS, {"name": "x"})
    for actor in (STRANGER, ADMIN):
        with pytest.raises(NotFound):
            changes.change(actor, ORG, AWS, {"name": "x"})

    assert nothing_happened(world, before)
    assert world.accounts.asked == []


def test_the_platform_s_is_changed_by_its_admin_alone(world: World, changes: ConnectionChanges) -> None:
    world.store.commit(aws_connection(managed_by=ManagedBy.PLATFORM, version=1))

    with pytest.raises(Forbidden) as rotation:
        changes.replace_credentials(OWNER, ORG, AWS, secret=SAME)
    with pytest.raises(Forbidden) as change:
        changes.change(OWNER, ORG, AWS, {"name": "x"})
    assert rotation.value.code == change.value.code == "platform_managed"

    assert changes.change(ADMIN, ORG, AWS, {"name": "shared"}).name == "shared"
    changes.replace_credentials(ADMIN, ORG, AWS, secret=SAME)
    assert world.secrets.read(AWS) == SAME


def test_a_removed_connection_is_not_changed(world: World, changes: ConnectionChanges) -> None:
    world.store.commit(aws_connection(version=1).remove(at=NOON))

    with pytest.raises(NotFound):
        changes.replace_credentials(OWNER, ORG, AWS, secret=SAME)
    with pytest.raises(NotFound):
        changes.change(OWNER, ORG, AWS, {"name": "x"})
