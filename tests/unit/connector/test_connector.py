"""The documents of a connection: for its members, and for the account that it is to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tensorant.connector.policy import policy
from tensorant.connector.template import CustomerBus
from tensorant.domain.connections import CredentialKind
from tensorant.domain.errors import Conflict, Invalid, NotFound
from tensorant.services.connections import ConnectionReader
from tensorant.services.connector import Connector, Made, Wanted
from tests.support.worlds import (
    ACCOUNT,
    AWS,
    AWS_SETTINGS,
    MEMBER,
    ORG,
    S3,
    STRANGER,
    World,
)

DEPLOYMENT = "999988887777"
BUS = CustomerBus(f"arn:aws:events:eu-west-1:{DEPLOYMENT}:event-bus/tensorant-customers")
PLAIN = Wanted()
PROFILE = f"arn:aws:iam::{ACCOUNT}:instance-profile/training"


@pytest.fixture
def connector(world: World) -> Connector:
    return Connector(ConnectionReader(world.store), BUS)


def change(world: World, **changes: Any) -> None:
    world.store.commit(replace(world.store.connection(ORG, AWS), **changes))


def resources(made: Made) -> set[str]:
    return set(made.document["Resources"])


def test_a_member_gets_the_policy_with_the_connections_values(connector: Connector) -> None:
    made = connector.policy(MEMBER, ORG, AWS, PLAIN)

    assert made == Made(document=policy(AWS_SETTINGS, ACCOUNT), account_id=ACCOUNT, region="us-east-1")


def test_optional_statements_come_when_wanted(connector: Connector, world: World) -> None:
    change(world, settings=replace(AWS_SETTINGS, instance_profile_arn=PROFILE))
    wanted = Wanted(quota=True, checks=True, profile_role_arn=f"arn:aws:iam::{ACCOUNT}:role/a/b")

    made = connector.policy(MEMBER, ORG, AWS, wanted)

    assert [each.get("Sid") for each in made.document["Statement"][5:]] == [
        None,
        "ReadQuotas",
        "ReadInstanceProfile",
    ]
    assert made.document["Statement"][5]["Resource"] == f"arn:aws:iam::{ACCOUNT}:role/a/b"
    assert made.notes == ()


def test_a_role_that_had_to_be_assumed_is_said(connector: Connector, world: World) -> None:
    change(world, settings=replace(AWS_SETTINGS, instance_profile_arn=PROFILE))

    [note] = connector.policy(MEMBER, ORG, AWS, PLAIN).notes

    assert f"arn:aws:iam::{ACCOUNT}:role/training" in note
    assert "profile_role_arn" in note


def test_an_account_that_nobody_knows_must_be_named(connector: Connector, world: World) -> None:
    change(world, account_id=None)

    with pytest.raises(Conflict) as caught:
        connector.policy(MEMBER, ORG, AWS, PLAIN)

    assert (caught.value.code, caught.value.field) == ("account_unknown", "account_id")
    assert connector.policy(MEMBER, ORG, AWS, Wanted(account_id=ACCOUNT)).account_id == ACCOUNT


def test_an_account_that_is_known_can_not_be_another(connector: Connector) -> None:
    with pytest.raises(Invalid) as caught:
        connector.policy(MEMBER, ORG, AWS, Wanted(account_id="444455556666"))

    assert (caught.value.code, caught.value.field) == ("other_account", "account_id")


def test_a_roles_account_is_known_from_its_arn(connector: Connector, world: World) -> None:
    role = replace(
        AWS_SETTINGS,
        credentials=CredentialKind.ROLE,
        role_arn="arn:aws:iam::444455556666:role/tensorant-x",
        external_id="external-1",
    )
    change(world, account_id=None, settings=role)

    made = connector.template(MEMBER, ORG, AWS, PLAIN)

    assert made.account_id == "444455556666"
    assert made.document["Resources"]["Identity"]["Properties"]["RoleName"] == "tensorant-x"


def test_the_connector_carries_the_very_policy(connector: Connector) -> None:
    wanted = Wanted(quota=True)

    made = connector.template(MEMBER, ORG, AWS, wanted)

    carried = made.document["Resources"]["IdentityPolicy"]["Properties"]["PolicyDocument"]
    assert carried == connector.policy(MEMBER, ORG, AWS, wanted).document


def test_the_deployments_own_account_has_only_events_to_forward(connector: Connector, world: World) -> None:
    change(world, account_id=None, settings=replace(AWS_SETTINGS, credentials=CredentialKind.SAME_ACCOUNT))

    made = connector.template(MEMBER, ORG, AWS, PLAIN)

    assert made.account_id == DEPLOYMENT
    assert resources(made) == {"ForwardingRole", "StateChanges", "HealthNotices"}


def test_where_there_is_nothing_to_deploy_it_is_said(connector: Connector, world: World) -> None:
    at_home = replace(AWS_SETTINGS, region="eu-west-1", credentials=CredentialKind.SAME_ACCOUNT)
    change(world, account_id=None, settings=at_home)

    with pytest.raises(Conflict) as caught:
        connector.template(MEMBER, ORG, AWS, PLAIN)

    assert caught.value.code == "nothing_to_deploy"


def test_a_policy_can_be_had_before_the_connection(connector: Connector) -> None:
    made = connector.policy_for(MEMBER, ORG, AWS_SETTINGS, ACCOUNT, PLAIN)

    assert made.document == policy(AWS_SETTINGS, ACCOUNT)


def test_storage_has_no_policy_of_ours(connector: Connector) -> None:
    with pytest.raises(NotFound):
        connector.policy(MEMBER, ORG, S3, PLAIN)


def test_a_stranger_learns_nothing(connector: Connector) -> None:
    for ask in (
        lambda: connector.policy(STRANGER, ORG, AWS, PLAIN),
        lambda: connector.template(STRANGER, ORG, AWS, PLAIN),
        lambda: connector.policy_for(STRANGER, ORG, AWS_SETTINGS, ACCOUNT, PLAIN),
    ):
        with pytest.raises(NotFound):
            ask()
