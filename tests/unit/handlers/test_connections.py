"""The connections function: it alone takes credentials, gives none back, and cuts nothing off."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tensorant import bootstrap
from tensorant.handlers import api, connections
from tests.support.calls import Caller, fixture_of
from tests.support.worlds import AWS, ORG, S3, World

CONNECTIONS = f"/v1/organizations/{ORG}/connections"
S3_REQUEST = {
    "kind": "s3",
    "name": "our bucket",
    "region": "eu-west-1",
    "bucket": "adapters",
    "prefix": "team",
    "credentials": {"access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "very-secret-indeed"},
}
KEYS = {"access_key_id": "AKIAIOSFODNN7EXAMPL2", "secret_access_key": "another-secret-indeed"}
TEMPORARY = {**KEYS, "access_key_id": "ASIAIOSFODNN7EXAMPLE", "session_token": "session-token-of-this-test"}


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


def test_every_wrong_field_is_told_and_nothing_is_stored(cloud: World, owner: Caller) -> None:
    before = [each.id for each in cloud.store.connections(ORG)]

    answer = owner.post(CONNECTIONS, request(region="cn-north-1", image_id="ubuntu", colour="green"))

    assert answer.status == 422
    told = [answer.error, *answer.body["also"]]
    assert {each["field"] for each in told} == {"region", "image_id", "colour"}
    assert all(each["message"] and each["mend"] for each in told)
    assert [each.id for each in cloud.store.connections(ORG)] == before


@pytest.mark.parametrize("kind", ["gcp", None])
def test_a_kind_that_is_not_known_is_refused(owner: Caller, kind: str | None) -> None:
    body = request(kind=kind)
    if kind is None:
        del body["kind"]

    answer = owner.post(CONNECTIONS, body)

    assert (answer.status, answer.error["field"]) == (422, "kind")
    assert "aws, s3" in answer.error["mend"]


@pytest.mark.parametrize("body", ["{", "[]", '"x"'])
def test_what_is_no_json_object_is_refused(owner: Caller, body: str) -> None:
    answer = owner.post(CONNECTIONS, body)

    assert answer.status == 422
    assert answer.error["mend"] == "Send a JSON object."


def test_expired_credentials_are_refused(owner: Caller) -> None:
    answer = owner.post(CONNECTIONS, request(credentials={**TEMPORARY, "expires_at": "2020-01-01T00:00:00Z"}))

    assert (answer.status, answer.error["field"]) == (422, "credentials.expires_at")
    assert (answer.error["code"], answer.error["mend"]) != ("", "")


def test_temporary_credentials_show_their_end_and_a_warning(owner: Caller) -> None:
    ends = bootstrap.clock().now() + timedelta(hours=8)

    answer = owner.post(
        CONNECTIONS, request(credentials={**TEMPORARY, "expires_at": ends.isoformat(timespec="seconds")})
    )

    assert answer.status == 202, answer.body
    assert answer.body["credentials_expire_at"] == ends.isoformat(timespec="seconds").replace("+00:00", "Z")
    (warning,) = answer.body["warnings"]
    assert warning["code"] == "credentials_expire_soon"
    assert bootstrap.secrets().read(answer.body["id"]).keys() == {
        "access_key_id",
        "secret_access_key",
        "session_token",
    }


def test_a_role_is_shown_its_external_id(owner: Caller) -> None:
    arn = "arn:aws:iam::111122223333:role/tensorant-training"

    answer = owner.post(CONNECTIONS, request(credentials={"kind": "role", "role_arn": arn}))

    assert answer.status == 202, answer.body
    settings = answer.body["settings"]
    assert (settings["credentials"], settings["role_arn"]) == ("role", arn)
    assert re.fullmatch("[0-9a-f]{32}", settings["external_id"])
    assert bootstrap.secrets().read(answer.body["id"]) == {}


# -- the platform's ----------------------------------------------------------------------------------------


def test_a_platform_admin_lends_the_deployment_s_own_account(owner: Caller) -> None:
    body = request(managed_by="platform", credentials={"kind": "same_account"})

    answer = owner.as_("ada", **{"cognito:groups": ["platform-admins"]}).post(CONNECTIONS, body)

    assert (answer.status, answer.body["managed_by"]) == (202, "platform"), answer.body


@pytest.mark.parametrize(
    ("managed_by", "code"),
    [("platform", "platform_admin_only"), ("organization", "same_account_by_platform_only")],
)
def test_an_owner_does_not_lend_it_to_itself(owner: Caller, managed_by: str, code: str) -> None:
    answer = owner.post(CONNECTIONS, request(managed_by=managed_by, credentials={"kind": "same_account"}))

    assert (answer.status, answer.error["code"]) == (403, code)
    assert answer.error["mend"]


# -- changing ----------------------------------------------------------------------------------------------


def test_settings_are_changed_and_checked(cloud: World, owner: Caller) -> None:
    answer = owner.call("PATCH", f"{CONNECTIONS}/{AWS}", body={"name": "ours", "image_id": "ami-00000001"})

    assert (answer.status, answer.body["status"], answer.body["name"]) == (202, "checking", "ours")
    assert answer.body["settings"]["image_id"] == "ami-00000001"
    assert cloud.store.connection(ORG, AWS).name == "ours"


def test_every_wrong_change_is_told(cloud: World, owner: Caller) -> None:
    answer = owner.call(
        "PATCH", f"{CONNECTIONS}/{AWS}", body={"region": "mars", "image_id": "x", "name": None}
    )

    assert answer.status == 422
    assert {each["field"] for each in [answer.error, *answer.body["also"]]} == {"region", "image_id", "name"}
    assert cloud.store.connection(ORG, AWS).version == 1


def test_in_use_it_does_not_move(cloud: World, owner: Caller) -> None:
    cloud.launched()

    answer = owner.call("PATCH", f"{CONNECTIONS}/{AWS}", body={"region": "eu-west-1"})

    assert (answer.status, answer.error["code"]) == (409, "connection_in_use")


def test_keys_are_replaced_by_those_of_the_same_account(cloud: World, owner: Caller) -> None:
    """In moto every key is known, and of one account."""
    account = str(bootstrap.client("sts").get_caller_identity()["Account"])
    cloud.store.commit(replace(cloud.store.connection(ORG, AWS), account_id=account))

    answer = owner.call("PUT", f"{CONNECTIONS}/{AWS}/credentials", body=KEYS)

    assert (answer.status, answer.body["status"], answer.body["account_id"]) == (202, "checking", account)
    assert bootstrap.secrets().read(AWS) == KEYS


def test_in_use_those_of_another_account_are_refused(cloud: World, owner: Caller) -> None:
    cloud.launched()

    answer = owner.call("PUT", f"{CONNECTIONS}/{AWS}/credentials", body=KEYS)

    assert (answer.status, answer.error["code"]) == (409, "other_account")
    assert answer.error["field"] == "access_key_id"


def test_wrong_keys_are_told_and_not_repeated(owner: Caller, capsys: pytest.CaptureFixture[str]) -> None:
    body = {**KEYS, "access_key_id": KEYS["secret_access_key"]}

    answer = owner.call("PUT", f"{CONNECTIONS}/{AWS}/credentials", body=body)

    assert (answer.status, answer.error["field"]) == (422, "access_key_id")
    assert KEYS["secret_access_key"] not in f"{answer.body}{capsys.readouterr()}"


# -- removing ----------------------------------------------------------------------------------------------


def test_a_removed_connection_is_gone_for_people(
    cloud: World, owner: Caller, people: Callable[..., Caller]
) -> None:
    reader = people(api)

    answer = owner.call("DELETE", f"{CONNECTIONS}/{AWS}")

    assert (answer.status, answer.body["status"]) == (200, "removed")
    assert owner.call("DELETE", f"{CONNECTIONS}/{AWS}").status == 404
    assert reader.get(f"{CONNECTIONS}/{AWS}").status == 404
    assert [each["id"] for each in reader.get(CONNECTIONS).body["items"]] == [S3]
    assert cloud.store.connection(ORG, AWS).removed


def test_in_use_it_is_not_removed(cloud: World, owner: Caller) -> None:
    cloud.launched()

    answer = owner.call("DELETE", f"{CONNECTIONS}/{AWS}")

    assert (answer.status, answer.error["code"]) == (409, "connection_in_use")
    assert "run-1" in answer.error["message"]
    assert owner.as_("mia").call("DELETE", f"{CONNECTIONS}/{AWS}").status == 403
    assert owner.as_("sam").call("DELETE", f"{CONNECTIONS}/{AWS}").status == 404
