"""A connection as it is sent: every wrong field is told at once, in words, with its mend, and without secrets."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from pydantic import TypeAdapter

from tensorant.domain.connections import CredentialKind, ManagedBy, S3Settings
from tensorant.handlers import problems
from tensorant.handlers.connection_requests import (
    CREATE_CONNECTION,
    REPLACE_CREDENTIALS,
    ChangeConnection,
    parsed,
)
from tests.support.calls import fixture_of
from tests.support.worlds import AWS_SETTINGS, NOON, later

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
TOKEN = "session-token-of-this-test"
KEYS = {"access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": SECRET}
TEMPORARY = {
    "access_key_id": "ASIAIOSFODNN7EXAMPLE",
    "secret_access_key": SECRET,
    "session_token": TOKEN,
    "expires_at": "2026-08-01T20:00:00Z",
}
ROLE_ARN = "arn:aws:iam::111122223333:role/tensorant-training"
CHANGE = TypeAdapter(ChangeConnection)
SETTINGS = replace(AWS_SETTINGS, subnet_ids=("subnet-0123456789abcdef0",))


def request(**changes: Any) -> dict[str, Any]:
    """An AWS connection; None leaves a field out."""
    body = {**fixture_of("connection_request"), "credentials": KEYS, **changes}
    return {name: value for name, value in body.items() if value is not None}


def s3_request(**changes: Any) -> dict[str, Any]:
    bucket = {"kind": "s3", "name": "ours", "region": "eu-west-1", "bucket": "adapters"}
    return {**bucket, "credentials": KEYS, **changes}


def faults(body: object, kind: TypeAdapter[Any] = CREATE_CONNECTION) -> dict[str | None, dict[str, Any]]:
    """What is told of a wrong request, by its fields."""
    with pytest.raises(RequestValidationError) as caught:
        parsed(kind, body, now=NOON)
    answer = json.loads(problems.invalid(caught.value.errors(), "request-1").body or "")
    told = [answer["error"], *answer["also"]]
    assert all(each["message"] and each["mend"] for each in told)
    assert SECRET not in str(answer)
    assert TOKEN not in str(answer)
    assert SECRET not in f"{caught.value!r}{caught.value.errors()}"
    assert caught.value.__cause__ is None
    return {each["field"]: each for each in told}


# -- what is taken -----------------------------------------------------------------------------------------


def test_the_guide_s_connection_is_taken() -> None:
    made = parsed(CREATE_CONNECTION, request(), now=NOON)

    assert made.settings() == SETTINGS
    assert made.managed_by is ManagedBy.ORGANIZATION
    assert made.credentials.secret() == KEYS
    assert made.credentials.expires_at is None


def test_every_setting_is_taken() -> None:
    profile = "arn:aws:iam::111122223333:instance-profile/training"
    body = request(
        region=" EU-West-1 ",
        subnet_ids=["subnet-0000000b", "subnet-0000000a"],
        key_name="olga's",
        instance_profile_arn=profile,
        managed_by="platform",
    )

    made = parsed(CREATE_CONNECTION, body, now=NOON)

    assert made.settings() == replace(
        SETTINGS,
        region="eu-west-1",
        subnet_ids=("subnet-0000000b", "subnet-0000000a"),
        key_name="olga's",
        instance_profile_arn=profile,
    )
    assert made.managed_by is ManagedBy.PLATFORM


def test_storage_is_taken() -> None:
    made = parsed(CREATE_CONNECTION, s3_request(prefix="team"), now=NOON)

    assert made.settings() == S3Settings(region="eu-west-1", bucket="adapters", prefix="team")


@pytest.mark.parametrize("kind", [{}, {"kind": "keys"}])
def test_keys_are_what_credentials_are_unless_another_kind_is_named(kind: dict[str, str]) -> None:
    made = parsed(CREATE_CONNECTION, request(credentials={**KEYS, **kind}), now=NOON)

    assert (made.settings(), made.credentials.secret()) == (SETTINGS, KEYS)


def test_a_pasted_secret_loses_its_line_end() -> None:
    made = parsed(REPLACE_CREDENTIALS, {**KEYS, "secret_access_key": f" {SECRET}\n"}, now=NOON)

    assert made.secret() == KEYS


def test_temporary_keys_bring_their_end() -> None:
    made = parsed(CREATE_CONNECTION, request(credentials=TEMPORARY), now=NOON)

    assert made.credentials.expires_at == later(hours=8)
    assert made.credentials.secret() == {
        "access_key_id": "ASIAIOSFODNN7EXAMPLE",
        "secret_access_key": SECRET,
        "session_token": TOKEN,
    }


def test_a_role_needs_no_secret() -> None:
    made = parsed(CREATE_CONNECTION, request(credentials={"kind": "role", "role_arn": ROLE_ARN}), now=NOON)

    assert made.settings() == replace(SETTINGS, credentials=CredentialKind.ROLE, role_arn=ROLE_ARN)
    assert (made.credentials.secret(), made.credentials.expires_at) == ({}, None)


def test_the_own_account_needs_nothing() -> None:
    made = parsed(CREATE_CONNECTION, request(credentials={"kind": "same_account"}), now=NOON)

    assert made.settings() == replace(SETTINGS, credentials=CredentialKind.SAME_ACCOUNT)
    assert (made.credentials.secret(), made.credentials.expires_at) == ({}, None)


# -- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "field", "code", "words"),
    [
        ({"region": "us-gov-west-1"}, "region", "region_of_other_partition", "GovCloud"),
        ({"region": "cn-north-1"}, "region", "region_of_other_partition", "China"),
        ({"region": "us-east-1a"}, "region", "region_unknown", "not a commercial region"),
        ({"region": None}, "region", "missing", "This is missing."),
        ({"region": 5}, "region", "string_type", "This must be text."),
        ({"image_id": "ami-latest"}, "image_id", "image_id_malformed", "not an AMI's id"),
        ({"subnet_ids": []}, "subnet_ids", "too_short", "at least 1"),
        ({"subnet_ids": "subnet-0000000a"}, "subnet_ids", "list_type", "must be a list"),
        ({"subnet_ids": ["vpc-0000000a"]}, "subnet_ids[0]", "subnet_id_malformed", "not a subnet's id"),
        (
            {"subnet_ids": ["subnet-0000000a", "subnet-0000000b", "subnet-0000000a"]},
            "subnet_ids",
            "subnet_named_twice",
            "subnet-0000000a is named more than once",
        ),
        (
            {"subnet_ids": [f"subnet-{number:08x}" for number in range(17)]},
            "subnet_ids",
            "too_long",
            "at most 16",
        ),
        ({"security_group_id": "default"}, "security_group_id", "security_group_id_malformed", "group"),
        ({"key_name": ""}, "key_name", "key_name_malformed", "1 to 255"),
        ({"instance_profile_arn": ROLE_ARN}, "instance_profile_arn", "role_arn_given", "ARN of a role"),
        (
            {"instance_profile_arn": "x"},
            "instance_profile_arn",
            "instance_profile_arn_malformed",
            "not the ARN",
        ),
        ({"name": ""}, "name", "string_too_short", "at least 1"),
        ({"name": "n" * 101}, "name", "string_too_long", "at most 100"),
        ({"managed_by": "me"}, "managed_by", "enum", "'organization' or 'platform'"),
        ({"colour": "green"}, "colour", "extra_forbidden", "no field of the request"),
        ({"credentials": None}, "credentials", "missing", "This is missing."),
        ({"credentials": SECRET}, "credentials", "model_type", "must be an object"),
        ({"credentials": {"kind": "magic"}}, "credentials.kind", "union_tag_invalid", "no such kind"),
    ],
)
def test_a_wrong_setting_is_told_in_words(changes: dict[str, Any], field: str, code: str, words: str) -> None:
    told = faults(request(**changes))

    assert list(told) == [field]
    assert told[field]["code"] == code
    assert told[field]["message"].startswith(f"{field}: ")
    assert words in told[field]["message"]


@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"access_key_id": SECRET}, "access_key_id", "access_key_id_malformed"),
        ({"access_key_id": "AROAIOSFODNN7EXAMPLE"}, "access_key_id", "access_key_id_malformed"),
        ({"secret_access_key": "short"}, "secret_access_key", "too_short"),
        ({"secret_access_key": {"a": SECRET}}, "secret_access_key", "string_type"),
        ({"access_key_id": "ASIAIOSFODNN7EXAMPLE"}, "session_token", "session_token_missing"),
        ({"session_token": TOKEN}, "expires_at", "expires_at_missing"),
        ({"expires_at": "2026-08-01T20:00:00Z"}, "expires_at", "expires_at_without_token"),
        ({"session_token": TOKEN, "expires_at": "2026-08-01T20:00:00"}, "expires_at", "timezone_aware"),
        ({"session_token": TOKEN, "expires_at": "soon"}, "expires_at", "datetime_from_date_parsing"),
        ({"session_token": TOKEN, "expires_at": "2026-08-01T12:00:00Z"}, "expires_at", "credentials_expired"),
        (
            {"session_token": TOKEN, "expires_at": "2026-08-01T13:59:59+02:00"},
            "expires_at",
            "credentials_expired",
        ),
        ({"password": SECRET}, "password", "extra_forbidden"),
    ],
)
def test_wrong_keys_are_told_and_never_repeated(changes: dict[str, Any], field: str, code: str) -> None:
    keys = {**KEYS, **changes}

    saved, replaced = faults(request(credentials=keys)), faults(keys, REPLACE_CREDENTIALS)
    stored = faults(s3_request(credentials=keys))

    assert list(saved) == list(stored) == [f"credentials.{field}"]
    assert list(replaced) == [field]
    assert {told["code"] for each in (saved, replaced, stored) for told in each.values()} == {code}


@pytest.mark.parametrize(
    ("role_arn", "code"),
    [
        ("tensorant-training", "role_arn_malformed"),
        ("arn:aws:iam::111122223333:role/training", "role_name_not_allowed"),
        ("arn:aws-us-gov:iam::111122223333:role/tensorant-training", "arn_of_other_partition"),
    ],
)
def test_a_role_that_can_not_be_assumed_is_refused(role_arn: str, code: str) -> None:
    told = faults(request(credentials={"kind": "role", "role_arn": role_arn}))

    assert [(field, each["code"]) for field, each in told.items()] == [("credentials.role_arn", code)]


def test_a_role_with_keys_is_refused() -> None:
    told = faults(request(credentials={"kind": "role", "role_arn": ROLE_ARN, **KEYS}))

    assert set(told) == {"credentials.access_key_id", "credentials.secret_access_key"}


@pytest.mark.parametrize("kind", ["role", "same_account"])
def test_storage_and_a_rotation_take_keys_only(kind: str) -> None:
    assert faults(s3_request(credentials={**KEYS, "kind": kind}))["credentials.kind"]["code"] == "keys_only"
    assert faults({**KEYS, "kind": kind}, REPLACE_CREDENTIALS)["kind"]["code"] == "keys_only"


def test_every_wrong_field_is_told_at_once() -> None:
    body = request(
        name="",
        region="cn-north-1",
        image_id="ubuntu",
        subnet_ids=["subnet-0000000a", "vpc-1"],
        security_group_id="default",
        key_name="",
        instance_profile_arn=ROLE_ARN,
        colour="green",
        credentials={
            "access_key_id": "me",
            "secret_access_key": "short",
            "session_token": TOKEN,
            "expires_at": "2020-01-01T00:00:00Z",
        },
    )

    told = faults(body)

    assert set(told) == {
        "name",
        "region",
        "image_id",
        "subnet_ids[1]",
        "security_group_id",
        "key_name",
        "instance_profile_arn",
        "colour",
        "credentials.access_key_id",
        "credentials.secret_access_key",
        "credentials.expires_at",
    }


@pytest.mark.parametrize("body", [[], "x", None, 5])
def test_what_is_no_object_is_refused(body: object) -> None:
    assert faults(body)


@pytest.mark.parametrize("kind", ["gcp", None])
def test_a_kind_that_is_not_known_is_refused(kind: str | None) -> None:
    assert "aws, s3" in faults(request(kind=kind))["kind"]["mend"]


def test_the_kinds_of_credentials_are_named() -> None:
    told = faults(request(credentials={"kind": "magic"}))

    assert told["credentials.kind"]["mend"] == "Use one of keys, role, same_account."


# -- changes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "changes"),
    [
        ({"name": "ours"}, {"name": "ours"}),
        ({"region": "EU-WEST-1"}, {"region": "eu-west-1"}),
        ({"subnet_ids": ["subnet-0000000b"]}, {"subnet_ids": ("subnet-0000000b",)}),
        ({"key_name": None}, {"key_name": None}),
        (
            {"instance_profile_arn": None, "role_arn": ROLE_ARN},
            {"instance_profile_arn": None, "role_arn": ROLE_ARN},
        ),
    ],
)
def test_a_change_is_what_was_sent(sent: dict[str, Any], changes: dict[str, Any]) -> None:
    assert parsed(CHANGE, sent, now=NOON).changes() == changes


def test_every_wrong_change_is_told_at_once() -> None:
    told = faults(
        {"region": "mars", "image_id": "x", "name": None, "subnet_ids": None, "external_id": "x"}, CHANGE
    )

    assert {field: each["code"] for field, each in told.items()} == {
        "region": "region_unknown",
        "image_id": "image_id_malformed",
        "name": "not_removable",
        "subnet_ids": "not_removable",
        "external_id": "extra_forbidden",
    }


def test_a_change_of_nothing_is_refused() -> None:
    told = faults({}, CHANGE)

    assert told[None]["code"] == "nothing_to_change"
    assert "image_id" in told[None]["mend"]
