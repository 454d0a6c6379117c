"""Trouble of AWS services is told once, in the words of the domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from tensorant.adapters.cloudwatch_logs import CloudWatchRunLogs
from tensorant.adapters.dynamodb.store import DynamoStore
from tensorant.adapters.s3 import S3Store, StagingBucket
from tensorant.adapters.secrets_manager import SecretsManager
from tensorant.domain.errors import Conflict, ProviderFault, Storage, TensorantError, Throttled
from tests.support.worlds import NOON, run


def stubbed(service: str) -> Stubber:
    client: Any = boto3.client(  # type: ignore[call-overload]
        service, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
    )
    return Stubber(client)


# -- the table ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("ProvisionedThroughputExceededException", Throttled),
        ("ThrottlingException", Throttled),
        ("RequestLimitExceeded", Throttled),
        ("InternalServerError", ProviderFault),
        ("ResourceNotFoundException", ProviderFault),
    ],
)
def test_the_tables_trouble_is_told_apart(code: str, kind: type[TensorantError]) -> None:
    with stubbed("dynamodb") as stubber:
        stubber.add_client_error("get_item", code)
        with pytest.raises(kind):
            DynamoStore(stubber.client, "records").run("run-1")


@pytest.mark.parametrize(
    ("reasons", "kind"),
    [
        (["None", "ConditionalCheckFailed"], Conflict),
        (["TransactionConflict", "None"], Conflict),
        (["ThrottlingError", "None"], ProviderFault),
        (["ItemCollectionSizeLimitExceeded"], ProviderFault),
    ],
)
def test_a_cancelled_transaction_is_a_conflict_only_if_somebody_was_faster(
    reasons: list[str], kind: type[TensorantError]
) -> None:
    with stubbed("dynamodb") as stubber:
        stubber.add_client_error(
            "transact_write_items",
            "TransactionCanceledException",
            modeled_fields={"CancellationReasons": [{"Code": reason} for reason in reasons]},
        )
        with pytest.raises(kind):
            DynamoStore(stubber.client, "records").commit(run())


def test_a_transaction_that_met_another_is_a_conflict() -> None:
    with stubbed("dynamodb") as stubber:
        stubber.add_client_error("transact_write_items", "TransactionConflictException")
        with pytest.raises(Conflict):
            DynamoStore(stubber.client, "records").commit(run())


# -- secrets, logs, storage --------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["create_secret", "put_secret_value"])
def test_a_secret_that_can_not_be_written_is_trouble(operation: str) -> None:
    with stubbed("secretsmanager") as stubber:
        if operation == "put_secret_value":
            stubber.add_client_error("create_secret", "ResourceExistsException")
        stubber.add_client_error(operation, "InternalServiceError")
        with pytest.raises(ProviderFault):
            SecretsManager(stubber.client, "prefix").write("conn-1", {"a": "b"})


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("put_log_events", lambda logs: logs.append("run-1", 1, "host", ["x"], at=NOON)),
        ("get_log_events", lambda logs: logs.read("run-1", 1, after=None, limit=1)),
    ],
)
def test_logs_that_do_not_answer_are_trouble(
    operation: str, call: Callable[[CloudWatchRunLogs], object]
) -> None:
    with stubbed("logs") as stubber:
        stubber.add_client_error(operation, "ServiceUnavailableException")
        with pytest.raises(ProviderFault):
            call(CloudWatchRunLogs(stubber.client, "runs"))


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("head_object", lambda store: store.head("x")),
        ("get_object", lambda store: store.get("x", limit=1)),
        ("get_object", lambda store: store.read("x", 0, 1, etag="e")),
        ("put_object", lambda store: store.put("x", b"1")),
    ],
)
@pytest.mark.parametrize("code", ["AccessDenied", "SlowDown", "403"])
def test_storage_that_refuses_is_trouble_with_the_storage(
    operation: str, call: Callable[[S3Store], object], code: str
) -> None:
    with stubbed("s3") as stubber:
        stubber.add_client_error(operation, code)
        with pytest.raises(Storage) as caught:
            call(S3Store(stubber.client, "bucket", ""))
    assert code in caught.value.message
    assert caught.value.mend


def test_staging_that_refuses_is_trouble_with_the_storage() -> None:
    with stubbed("s3") as stubber:
        stubber.add_client_error("get_object", "AccessDenied")
        with pytest.raises(Storage):
            StagingBucket(stubber.client, "staging").stream("x")
