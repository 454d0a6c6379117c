"""The connections function: it alone takes credentials, and gives none back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tensorant import bootstrap
from tensorant.handlers import connections
from tests.support.calls import Caller, fixture_of
from tests.support.worlds import AWS, ORG, World

CONNECTIONS = f"/v1/organizations/{ORG}/connections"
S3_REQUEST = {
    "kind": "s3",
    "name": "our bucket",
    "region": "eu-west-1",
    "bucket": "adapters",
    "prefix": "team",
    "credentials": {"access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "very-secret-indeed"},
}


@pytest.fixture
def owner(cloud: World, people: Callable[..., Caller]) -> Caller:
    return people(connections).as_("olga")


def request(**changes: Any) -> dict[str, Any]:
    return {**fixture_of("connection_request"), **changes}


@pytest.mark.parametrize("body", [request(), S3_REQUEST])
def test_a_connection_is_saved_and_its_check_accepted(
    cloud: World, owner: Caller, body: dict[str, Any]
) -> None:
    answer = owner.post(CONNECTIONS, body)

    assert answer.status == 202, answer.body
    assert (answer.body["kind"], answer.body["status"]) == (body["kind"], "checking")
    assert cloud.store.connection(ORG, answer.body["id"]).created_by == "olga"
    assert bootstrap.secrets().read(answer.body["id"]) == {
        "access_key_id": "AKIAIOSFODNN7EXAMPLE",
        "secret_access_key": "very-secret-indeed",
    }


def test_credentials_are_neither_shown_nor_logged(owner: Caller, capsys: pytest.CaptureFixture[str]) -> None:
    answer = owner.post(CONNECTIONS, request())
    wrong = owner.post(CONNECTIONS, request(region="nowhere"))

    assert "very-secret-indeed" not in str(answer.body)
    assert "very-secret-indeed" not in str(wrong.body)
    assert "very-secret-indeed" not in "".join(capsys.readouterr())


def test_a_member_may_not_save_one(owner: Caller) -> None:
    answer = owner.as_("mia").post(CONNECTIONS, request())

    assert (answer.status, answer.error["code"]) == (403, "owner_only")


def test_a_stranger_finds_no_organization(owner: Caller) -> None:
    assert owner.as_("sam").post(CONNECTIONS, request()).status == 404
    assert owner.as_("sam").post(f"{CONNECTIONS}/{AWS}/check").status == 404


def test_a_check_is_accepted(cloud: World, owner: Caller) -> None:
    answer = owner.post(f"{CONNECTIONS}/{AWS}/check")

    assert (answer.status, answer.body["status"]) == (202, "checking")


def test_a_member_may_not_start_one(cloud: World, owner: Caller) -> None:
    answer = owner.as_("mia").post(f"{CONNECTIONS}/{AWS}/check")

    assert (answer.status, answer.error["code"]) == (403, "owner_only")
    assert cloud.store.connection(ORG, AWS).status == "connected"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"region": "us-gov-west-1"}, "region"),
        ({"region": "cn-north-1"}, "region"),
        ({"region": "US-EAST-1"}, "region"),
        ({"image_id": "ami-latest"}, "image_id"),
        ({"subnet_ids": []}, "subnet_ids"),
        ({"subnet_ids": ["vpc-0123456789abcdef0"]}, "subnet_ids[0]"),
        ({"security_group_id": "default"}, "security_group_id"),
        ({"instance_profile_arn": "arn:aws:iam::111122223333:role/x"}, "instance_profile_arn"),
        ({"colour": "green"}, "colour"),
    ],
)
def test_a_wrong_setting_is_named(owner: Caller, changes: dict[str, Any], field: str) -> None:
    answer = owner.post(CONNECTIONS, request(**changes))

    assert answer.status == 422
    assert answer.error["field"] == field
    assert answer.error["mend"]


@pytest.mark.parametrize("kind", ["gcp", None])
def test_a_kind_that_is_not_known_is_refused(owner: Caller, kind: str | None) -> None:
    body = request(kind=kind)
    if kind is None:
        del body["kind"]

    answer = owner.post(CONNECTIONS, body)

    assert (answer.status, answer.error["field"]) == (422, "kind")
    assert "aws, s3" in answer.error["mend"]
