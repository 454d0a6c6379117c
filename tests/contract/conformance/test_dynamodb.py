"""DynamoDB as AWS documents it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from tests.contract.conformance.patience import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorant_local.aws.server import EmbeddedAws


class Bench:
    """One table with a string key, and a stream."""

    def __init__(self, aws: EmbeddedAws) -> None:
        self.client = aws.client("dynamodb")
        self.table = f"table-{uuid4().hex[:8]}"
        described = self.client.create_table(
            TableName=self.table,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )
        self.stream_arn = str(described["TableDescription"]["LatestStreamArn"])

    def put(self, key: str, **more: Any) -> None:
        self.client.put_item(TableName=self.table, Item={"pk": {"S": key}}, **more)

    def number(self, key: str) -> int:
        return int(self.client.get_item(TableName=self.table, Key={"pk": {"S": key}})["Item"]["n"]["N"])

    def increment(self, key: str) -> dict[str, Any]:
        return {
            "TableName": self.table,
            "Key": {"pk": {"S": key}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }

    def claim(self, key: str, **condition: Any) -> dict[str, Any]:
        return {"Put": {"TableName": self.table, "Item": {"pk": {"S": key}}, **condition}}


@pytest.fixture(scope="module")
def bench(aws: EmbeddedAws) -> Bench:
    return Bench(aws)


def test_no_concurrent_increment_is_lost(bench: Bench) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: bench.client.update_item(**bench.increment("counter")), range(200)))

    assert bench.number("counter") == 200


def test_of_concurrent_claims_one_wins(bench: Bench) -> None:
    claim = bench.claim("claimed", ConditionExpression="attribute_not_exists(pk)")

    def won(_: int) -> bool:
        try:
            bench.client.transact_write_items(TransactItems=[claim])
        except bench.client.exceptions.TransactionCanceledException:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(won, range(40))) == 1


def test_a_transaction_with_a_token_happens_once(bench: Bench) -> None:
    request = {"TransactItems": [{"Update": bench.increment("once")}], "ClientRequestToken": uuid4().hex}

    for _ in range(3):
        bench.client.transact_write_items(**request)

    assert bench.number("once") == 1
    with pytest.raises(bench.client.exceptions.IdempotentParameterMismatchException):
        bench.client.transact_write_items(
            **request | {"TransactItems": [{"Update": bench.increment("other")}]}
        )


def test_a_cancelled_transaction_may_be_tried_again_with_its_token(bench: Bench) -> None:
    condition = {"ConditionExpression": "attribute_exists(pk)"}
    request = {"TransactItems": [bench.claim("late", **condition)], "ClientRequestToken": uuid4().hex}
    with pytest.raises(bench.client.exceptions.TransactionCanceledException):
        bench.client.transact_write_items(**request)
    bench.put("late")

    bench.client.transact_write_items(**request)


@pytest.mark.parametrize(
    "unused",
    [
        {"ExpressionAttributeValues": {":unused": {"S": "x"}}},
        {"ExpressionAttributeNames": {"#unused": "x"}},
    ],
)
def test_names_and_values_must_be_used(bench: Bench, unused: dict[str, Any]) -> None:
    condition = {"ConditionExpression": "attribute_not_exists(pk)", **unused}
    claim = bench.claim("refused", **condition)

    for call in (
        lambda: bench.put("refused", **condition),
        lambda: bench.client.transact_write_items(TransactItems=[claim]),
    ):
        with pytest.raises(ClientError) as refused:
            call()
        assert refused.value.response["Error"]["Code"] == "ValidationException"


def test_changes_reach_a_function_once_and_in_order(
    aws: EmbeddedAws, deploy: Callable[[Any], str], calls: Callable[[str], list[Any]]
) -> None:
    bench = Bench(aws)

    def reads_the_table(_event: Any) -> int:
        return len(bench.client.scan(TableName=bench.table)["Items"])  # a trigger may use its own table

    arn = deploy(reads_the_table)
    aws.client("lambda").create_event_source_mapping(
        EventSourceArn=bench.stream_arn, FunctionName=arn, StartingPosition="TRIM_HORIZON", BatchSize=10
    )

    def records() -> list[dict[str, Any]]:
        return [record for event in calls(arn) for record in event["Records"]]

    for key in ("a", "b", "c"):
        bench.put(key)
    refused = bench.claim("b", ConditionExpression="attribute_not_exists(pk)")
    with pytest.raises(bench.client.exceptions.TransactionCanceledException):
        bench.client.transact_write_items(TransactItems=[bench.claim("never"), refused])
    bench.client.update_item(**bench.increment("a"))

    eventually(records, lambda seen: len(seen) >= 4)
    keys = [(record["eventName"], record["dynamodb"]["Keys"]["pk"]["S"]) for record in records()]
    assert keys == [("INSERT", "a"), ("INSERT", "b"), ("INSERT", "c"), ("MODIFY", "a")]
    assert records()[3]["dynamodb"]["NewImage"]["n"] == {"N": "1"}
    assert records()[3]["dynamodb"]["OldImage"] == {"pk": {"S": "a"}}
    assert len({record["dynamodb"]["SequenceNumber"] for record in records()}) == 4


def test_a_filter_keeps_back_what_it_does_not_name(
    aws: EmbeddedAws, deploy: Callable[[Any], str], calls: Callable[[str], list[Any]]
) -> None:
    bench = Bench(aws)

    def listen(_event: Any) -> None:
        return None

    arn = deploy(listen)
    pattern = {"eventName": ["INSERT"], "dynamodb": {"Keys": {"pk": {"S": ["b", "c"]}}}}
    aws.client("lambda").create_event_source_mapping(
        EventSourceArn=bench.stream_arn,
        FunctionName=arn,
        StartingPosition="TRIM_HORIZON",
        FilterCriteria={"Filters": [{"Pattern": json.dumps(pattern)}]},
    )

    bench.put("a")
    bench.put("b")
    bench.client.update_item(**bench.increment("b"))
    bench.put("c")

    def told() -> list[tuple[str, str]]:
        records = [record for event in calls(arn) for record in event["Records"]]
        return [(record["eventName"], record["dynamodb"]["Keys"]["pk"]["S"]) for record in records]

    eventually(told, lambda seen: len(seen) >= 2)
    assert told() == [("INSERT", "b"), ("INSERT", "c")]


def test_records_wait_for_a_busy_function_and_come_in_batches(
    aws: EmbeddedAws, deploy: Callable[[Any], str], calls: Callable[[str], list[Any]]
) -> None:
    bench, may_go_on = Bench(aws), Event()

    def busy(_event: Any) -> None:
        may_go_on.wait(10)

    arn = deploy(busy)
    aws.client("lambda").create_event_source_mapping(
        EventSourceArn=bench.stream_arn, FunctionName=arn, StartingPosition="TRIM_HORIZON", BatchSize=3
    )

    bench.put("0")
    eventually(lambda: calls(arn), bool)
    for number in range(1, 5):
        bench.put(str(number))
    may_go_on.set()

    def batches() -> list[list[str]]:
        return [
            [record["dynamodb"]["Keys"]["pk"]["S"] for record in event["Records"]] for event in calls(arn)
        ]

    eventually(batches, lambda seen: sum(map(len, seen)) >= 5)
    assert batches() == [["0"], ["1", "2", "3"], ["4"]]


def test_a_bad_record_is_parted_from_the_good_ones_and_given_up(
    aws: EmbeddedAws, deploy: Callable[[Any], str], calls: Callable[[str], list[Any]]
) -> None:
    bench, may_go_on, taken = Bench(aws), Event(), []

    def refuses_bad_ones(event: Any) -> None:
        may_go_on.wait(10)
        keys = [record["dynamodb"]["Keys"]["pk"]["S"] for record in event["Records"]]
        if "bad" in keys:
            raise ValueError("bad")
        taken.extend(keys)

    arn = deploy(refuses_bad_ones)
    aws.client("lambda").create_event_source_mapping(
        EventSourceArn=bench.stream_arn,
        FunctionName=arn,
        StartingPosition="TRIM_HORIZON",
        BisectBatchOnFunctionError=True,
        MaximumRetryAttempts=1,
    )

    bench.put("0")
    eventually(lambda: calls(arn), bool)
    for key in ("1", "bad", "2", "3"):
        bench.put(key)
    may_go_on.set()

    eventually(lambda: list(taken), lambda seen: "3" in seen)
    assert taken == ["0", "1", "2", "3"]
    alone = [event for event in calls(arn) if len(event["Records"]) == 1]
    assert [event["Records"][0]["dynamodb"]["Keys"]["pk"]["S"] for event in alone] == ["0", "1", "bad", "bad"]
