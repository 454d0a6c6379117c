"""A chunk of the log goes out in as many requests as its size asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tensorant.adapters.cloudwatch_logs import CloudWatchRunLogs
from tests.support.worlds import NOON

MEBIBYTE = 1_048_576


class Logs:
    """A client whose stream exists; keeps the requests as CloudWatch counts them."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []

    def put_log_events(self, **request: Any) -> None:
        messages = [event["message"] for event in request["logEvents"]]
        assert sum(len(message.encode()) + 26 for message in messages) <= MEBIBYTE
        self.requests.append(messages)

    class exceptions:  # noqa: N801 - as boto3 names it
        ResourceNotFoundException = KeyError


@pytest.mark.parametrize(
    ("lines", "requests"),
    [
        (["short"], 1),
        (["x" * 2000] * 500, 1),
        # 1,000 lines of 8,000 characters of two bytes and 30 of wrapping: 65 a request
        (["é" * 8000] * 1000, 16),
        (["🙂" * 9000] * 1000, 32),
    ],
)
def test_no_request_is_larger_than_cloudwatch_takes(lines: list[str], requests: int) -> None:
    client: Any = Logs()

    CloudWatchRunLogs(client, "runs").append("run-1", 1, "trainer", lines, at=NOON)

    sent = [json.loads(message)["text"] for request in client.requests for message in request]
    assert sent == [line[:8000] for line in lines]
    assert len(client.requests) == requests
