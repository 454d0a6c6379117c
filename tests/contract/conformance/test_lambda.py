"""Lambda's Invoke as AWS documents it."""

from __future__ import annotations

import json
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.conformance.patience import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorant_local.aws.server import EmbeddedAws


@pytest.fixture(scope="module")
def client(aws: EmbeddedAws) -> Any:
    return aws.client("lambda")


def test_a_function_answers(client: Any, deploy: Callable[[Any], str]) -> None:
    def double(event: Any) -> Any:
        return {"n": event["n"] * 2}

    answer = client.invoke(FunctionName=deploy(double), Payload=json.dumps({"n": 21}))

    assert answer["StatusCode"] == 200
    assert "FunctionError" not in answer
    assert json.load(answer["Payload"]) == {"n": 42}


def test_a_function_is_invoked_by_name_and_without_a_payload(
    client: Any, deploy: Callable[[Any], str]
) -> None:
    def echo(event: Any) -> Any:
        return event

    answer = client.invoke(FunctionName=deploy(echo).split(":")[-1])

    assert json.load(answer["Payload"]) == {}


def test_an_exception_is_described(client: Any, deploy: Callable[[Any], str]) -> None:
    def fails(_event: Any) -> None:
        raise PermissionError("no entry")

    answer = client.invoke(FunctionName=deploy(fails), Payload="{}")

    assert (answer["StatusCode"], answer["FunctionError"]) == (200, "Unhandled")
    report = json.load(answer["Payload"])
    assert (report["errorType"], report["errorMessage"]) == ("PermissionError", "no entry")


def test_an_event_is_accepted_before_it_is_handled(
    client: Any, deploy: Callable[[Any], str], calls: Callable[[str], list[Any]]
) -> None:
    may_end = Event()

    def slow(_event: Any) -> None:
        may_end.wait(10)

    arn = deploy(slow)
    answer = client.invoke(FunctionName=arn, InvocationType="Event", Payload='{"n": 1}')
    may_end.set()

    assert answer["StatusCode"] == 202
    assert answer["Payload"].read() == b""
    assert eventually(lambda: calls(arn), bool) == [{"n": 1}]


def test_a_failed_event_is_handled_twice_more(
    client: Any, deploy: Callable[[Any], str], calls: Callable[[str], list[Any]]
) -> None:
    def fails(_event: Any) -> None:
        raise ValueError

    arn = deploy(fails)
    client.invoke(FunctionName=arn, InvocationType="Event", Payload="{}")

    eventually(lambda: calls(arn), lambda seen: len(seen) == 3)


def test_a_missing_function_is_refused(client: Any) -> None:
    with pytest.raises(ClientError) as refused:
        client.invoke(FunctionName="missing", Payload="{}")

    assert refused.value.response["Error"]["Code"] == "ResourceNotFoundException"
