"""Policies and the connector over the API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest

from tensorant.connector.policy import policy
from tensorant.handlers import api
from tests.support.calls import Caller
from tests.support.worlds import ACCOUNT, AWS, AWS_SETTINGS, ORG, S3, World

BASE = f"/v1/organizations/{ORG}"
POLICY = f"{BASE}/connections/{AWS}/policy"
CONNECTOR = f"{BASE}/connections/{AWS}/connector"
DRAFT = f"{BASE}/aws-policy"


@pytest.fixture
def member(cloud: World, people: Callable[..., Caller]) -> Caller:
    return people(api)


def settings(**changes: Any) -> dict[str, Any]:
    """A connection's settings as they are entered, and the account they are to."""
    names = ("region", "image_id", "subnet_ids", "security_group_id", "key_name", "instance_profile_arn")
    entered = {name: value for name, value in asdict(AWS_SETTINGS).items() if name in names}
    return {**entered, "account_id": ACCOUNT, **changes}


def test_a_policy_is_ready_to_be_pasted(member: Caller) -> None:
    answer = member.get(POLICY)

    assert answer.status == 200
    assert answer.body == {
        "policy": policy(AWS_SETTINGS, ACCOUNT),
        "account_id": ACCOUNT,
        "region": "us-east-1",
        "notes": [],
    }


def test_optional_statements_are_asked_for_in_the_query(member: Caller) -> None:
    answer = member.get(POLICY, "quota=true&checks=true")

    assert answer.body["policy"] == policy(AWS_SETTINGS, ACCOUNT, quota=True, checks=True)


def test_the_connector_is_ready_to_be_deployed(member: Caller) -> None:
    answer = member.get(CONNECTOR)

    assert answer.status == 200
    assert answer.body["template"]["Resources"]["Identity"]["Type"] == "AWS::IAM::User"
    assert (answer.body["account_id"], answer.body["region"]) == (ACCOUNT, "us-east-1")


def test_an_account_that_is_not_known_is_asked_for(member: Caller, cloud: World) -> None:
    cloud.store.commit(replace(cloud.store.connection(ORG, AWS), account_id=None))

    refused, named = member.get(POLICY), member.get(POLICY, f"account_id={ACCOUNT}")

    assert (refused.status, refused.error["code"], refused.error["field"]) == (
        409,
        "account_unknown",
        "account_id",
    )
    assert refused.error["mend"]
    assert named.status == 200


@pytest.mark.parametrize(
    ("query", "field"),
    [("account_id=1234", "account_id"), ("profile_role_arn=training", "profile_role_arn")],
)
def test_a_wrong_value_in_the_query_is_named(member: Caller, query: str, field: str) -> None:
    answer = member.get(POLICY, query)

    assert (answer.status, answer.error["field"]) == (422, field)


def test_a_policy_can_be_had_before_the_connection(member: Caller) -> None:
    answer = member.post(DRAFT, settings(quota=True))

    assert answer.status == 200
    assert answer.body["policy"] == policy(AWS_SETTINGS, ACCOUNT, quota=True)


def test_every_wrong_setting_is_named_at_once(member: Caller) -> None:
    answer = member.post(DRAFT, settings(account_id="12", image_id="ami", subnet_ids=[], secret="x"))

    assert answer.status == 422
    assert {answer.error["field"], *(each["field"] for each in answer.body["also"])} == {
        "account_id",
        "image_id",
        "subnet_ids",
        "secret",
    }


@pytest.mark.parametrize("path", [POLICY, CONNECTOR])
def test_a_stranger_is_told_that_there_is_nothing(member: Caller, path: str) -> None:
    assert member.as_("sam").get(path).status == 404


def test_a_stranger_gets_no_policy_either(member: Caller) -> None:
    assert member.as_("sam").post(DRAFT, settings()).status == 404


def test_storage_has_none(member: Caller) -> None:
    assert member.get(f"{BASE}/connections/{S3}/policy").status == 404
