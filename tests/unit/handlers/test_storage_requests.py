"""Storage as it is sent: AWS S3, stores that speak its API, RunPod's volumes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from pydantic import TypeAdapter

from tensorant.domain.connections import S3Settings
from tensorant.domain.storages import RunPodStorageSettings
from tensorant.handlers import problems
from tensorant.handlers.connection_requests import CREATE_CONNECTION, credentials_of, parsed
from tests.support.worlds import NOON

SECRET = "a-secret-of-this-test"
AWS_KEYS = {"access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": SECRET}
MINIO_KEYS = {"access_key_id": "minio", "secret_access_key": SECRET}
RUNPOD_KEYS = {"access_key_id": "user_2fJq0abcdefg", "secret_access_key": f"rps_{SECRET}"}


def s3(**changes: Any) -> dict[str, Any]:
    body = {
        "kind": "s3",
        "name": "ours",
        "region": "us-east-1",
        "bucket": "adapters",
        "credentials": AWS_KEYS,
    }
    return {**body, **changes}


def store(**changes: Any) -> dict[str, Any]:
    return s3(**{"endpoint_url": "https://minio.example.com/", "credentials": MINIO_KEYS, **changes})


def volume(**changes: Any) -> dict[str, Any]:
    body = {"kind": "runpod_storage", "name": "ours", "datacenter": "eu-ro-1", "volume_id": "a1b2c3d4e5"}
    return {**body, "credentials": RUNPOD_KEYS, **changes}


def faults(body: object, kind: TypeAdapter[Any] = CREATE_CONNECTION) -> dict[str | None, str]:
    """The codes of what is told, by field."""
    with pytest.raises(RequestValidationError) as caught:
        parsed(kind, body, now=NOON)
    answer = json.loads(problems.invalid(caught.value.errors(), "request-1").body or "")
    told = [answer["error"], *answer["also"]]
    assert all(each["message"] and each["mend"] for each in told)
    assert SECRET not in str(answer)
    return {each["field"]: each["code"] for each in told}


def test_without_an_endpoint_it_is_aws() -> None:
    made = parsed(CREATE_CONNECTION, s3(prefix="/team/"), now=NOON)

    assert made.settings() == S3Settings(region="us-east-1", bucket="adapters", prefix="team")
    assert made.settings().addressing_style == "virtual"


def test_a_store_has_keys_and_a_region_of_its_own_and_the_bucket_in_the_path() -> None:
    made = parsed(CREATE_CONNECTION, store(region="auto"), now=NOON)

    assert made.settings() == S3Settings(
        region="auto",
        bucket="adapters",
        endpoint_url="https://minio.example.com",
        addressing_style="path",
    )
    assert made.credentials.secret() == MINIO_KEYS


def test_the_addressing_style_may_be_chosen() -> None:
    made = parsed(CREATE_CONNECTION, store(addressing_style="virtual"), now=NOON)

    assert made.settings().addressing_style == "virtual"


def test_a_volume_is_named_by_datacenter_and_id() -> None:
    made = parsed(CREATE_CONNECTION, volume(prefix="team"), now=NOON)

    assert made.settings() == RunPodStorageSettings(
        datacenter="EU-RO-1", volume_id="a1b2c3d4e5", prefix="team"
    )
    assert made.credentials.secret() == RUNPOD_KEYS
    assert made.credentials.expires_at is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (s3(region="auto"), {"region": "region_unknown"}),
        (s3(credentials=MINIO_KEYS), {"credentials.access_key_id": "access_key_id_malformed"}),
        (s3(bucket="s3://ours"), {"bucket": "bucket_malformed"}),
        (s3(prefix="a//b"), {"prefix": "prefix_malformed"}),
        (store(endpoint_url="http://minio.example.com"), {"endpoint_url": "endpoint_not_allowed"}),
        (store(endpoint_url="https://10.0.0.7"), {"endpoint_url": "endpoint_not_allowed"}),
        (store(endpoint_url=f"https://user:{SECRET}@x.org"), {"endpoint_url": "endpoint_not_allowed"}),
        (store(region="us east"), {"region": "region_malformed"}),
        (
            store(credentials={**MINIO_KEYS, "access_key_id": "a b"}),
            {"credentials.access_key_id": "string_pattern_mismatch"},
        ),
        (
            store(endpoint_url="https://localhost", bucket="X"),
            {"endpoint_url": "endpoint_not_allowed", "bucket": "bucket_malformed"},
        ),
        (volume(datacenter="EU-XX-9"), {"datacenter": "datacenter_unknown"}),
        (volume(volume_id="My Volume"), {"volume_id": "volume_id_malformed"}),
        (
            volume(credentials={"access_key_id": "rpa_KEY", "secret_access_key": SECRET}),
            {
                "credentials.access_key_id": "access_key_id_malformed",
                "credentials.secret_access_key": "secret_of_other_api",
            },
        ),
        (volume(region="us-east-1"), {"region": "extra_forbidden"}),
    ],
)
def test_what_is_wrong_is_told_by_its_field(body: dict[str, Any], expected: dict[str, str]) -> None:
    assert faults(body) == expected


def test_a_deployment_may_allow_private_endpoints() -> None:
    body = store(endpoint_url="http://minio:9000")

    made = parsed(CREATE_CONNECTION, body, now=NOON, private_storage=True)

    assert made.settings().endpoint_url == "http://minio:9000"


@pytest.mark.parametrize(
    ("connection_id", "keys", "expected"),
    [
        ("conn-s3-9f86d081", MINIO_KEYS, MINIO_KEYS),
        ("conn-runpod_storage-9f86d081", RUNPOD_KEYS, RUNPOD_KEYS),
        ("conn-aws-9f86d081", AWS_KEYS, AWS_KEYS),
    ],
)
def test_other_credentials_are_those_of_the_connections_kind(
    connection_id: str, keys: dict[str, str], expected: dict[str, str]
) -> None:
    assert parsed(credentials_of(connection_id), keys, now=NOON).secret() == expected


def test_other_credentials_of_another_kind_are_refused() -> None:
    assert faults(AWS_KEYS, credentials_of("conn-runpod_storage-1")).keys() == {
        "access_key_id",
        "secret_access_key",
    }
    assert faults(MINIO_KEYS, credentials_of("conn-aws-1")) == {"access_key_id": "access_key_id_malformed"}
