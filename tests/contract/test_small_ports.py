"""Secrets and run logs: one suite for AWS and for the memory that stands in for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from tensorant.adapters.clock import RandomIds, SystemClock
from tensorant.adapters.cloudwatch_logs import CloudWatchRunLogs
from tensorant.adapters.secrets_manager import SecretsManager, deployment_key
from tensorant.domain.errors import Credentials, ProviderFault
from tensorant.ports import Ids, RunLogs, Secrets
from tests.support.fakes import MemoryRunLogs, MemorySecrets, SequentialIds

SECRET = {"access_key_id": "AKIA", "secret_access_key": "sécret"}
numbers = count()


# -- secrets -----------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "secrets manager"])
def secrets(request: pytest.FixtureRequest) -> Secrets:
    if request.param == "memory":
        return MemorySecrets()
    client = request.getfixturevalue("moto_client")("secretsmanager")
    return SecretsManager(client, f"tensorant/dep-{next(numbers)}/connections")


def test_a_secret_is_read_back(secrets: Secrets) -> None:
    secrets.write("conn-1", SECRET)

    assert secrets.read("conn-1") == SECRET


def test_a_secret_is_replaced(secrets: Secrets) -> None:
    secrets.write("conn-1", {**SECRET, "session_token": "old"})
    secrets.write("conn-1", SECRET)

    assert secrets.read("conn-1") == SECRET


def test_a_secret_that_is_not_there_is_a_matter_of_credentials(secrets: Secrets) -> None:
    secrets.write("conn-1", SECRET)

    with pytest.raises(Credentials) as caught:
        secrets.read("conn-2")
    assert caught.value.mend


def test_a_deleted_secret_is_gone_and_may_be_deleted_again(secrets: Secrets) -> None:
    secrets.write("conn-1", SECRET)

    secrets.delete("conn-1")
    secrets.delete("conn-1")
    secrets.delete("conn-never")

    with pytest.raises(Credentials):
        secrets.read("conn-1")


def test_the_deployment_key_is_read(moto_client: Callable[[str], Any]) -> None:
    client = moto_client("secretsmanager")
    arn = client.create_secret(Name="deployment-key", SecretString="k" * 64)["ARN"]

    assert deployment_key(client, arn) == b"k" * 64
    with pytest.raises(ProviderFault):
        deployment_key(client, arn + "x")


# -- run logs ----------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "cloudwatch"])
def logs(request: pytest.FixtureRequest) -> RunLogs:
    if request.param == "memory":
        return MemoryRunLogs()
    client = request.getfixturevalue("moto_client")("logs")
    group = f"runs-{next(numbers)}"
    client.create_log_group(logGroupName=group)
    return CloudWatchRunLogs(client, group)


def texts(
    logs: RunLogs, *, after: str | None = None, limit: int = 100, attempt: int = 1
) -> list[tuple[str, str]]:
    page = logs.read("run-1", attempt, after=after, limit=limit)
    return [(line.source, line.text) for line in page.lines]


def test_lines_are_read_in_their_order(logs: RunLogs) -> None:
    now = SystemClock().now().replace(microsecond=0)
    logs.append("run-1", 1, "host", ["one", "two"], at=now)
    logs.append("run-1", 1, "trainer", ['{"three": 3}', "", "fünf"], at=now)

    assert texts(logs) == [
        ("host", "one"),
        ("host", "two"),
        ("trainer", '{"three": 3}'),
        ("trainer", ""),
        ("trainer", "fünf"),
    ]
    assert logs.read("run-1", 1, after=None, limit=1).lines[0].at == now


def test_pages_follow_each_other(logs: RunLogs) -> None:
    now = SystemClock().now()
    logs.append("run-1", 1, "host", ["one", "two", "three"], at=now)

    first = logs.read("run-1", 1, after=None, limit=2)
    second = logs.read("run-1", 1, after=first.next, limit=2)
    third = logs.read("run-1", 1, after=second.next, limit=2)

    assert [[line.text for line in page.lines] for page in (first, second, third)] == [
        ["one", "two"],
        ["three"],
        [],
    ]
    assert third.next == second.next


def test_what_comes_later_is_found_after_the_last_page(logs: RunLogs) -> None:
    now = SystemClock().now()
    logs.append("run-1", 1, "host", ["one"], at=now)
    read = logs.read("run-1", 1, after=None, limit=10)
    logs.append("run-1", 1, "host", ["two"], at=now)

    assert texts(logs, after=read.next) == [("host", "two")]


def test_attempts_have_logs_of_their_own(logs: RunLogs) -> None:
    now = SystemClock().now()
    logs.append("run-1", 1, "host", ["one"], at=now)
    logs.append("run-1", 2, "host", ["two"], at=now)

    assert texts(logs, attempt=2) == [("host", "two")]


def test_nothing_was_said_yet(logs: RunLogs) -> None:
    logs.append("run-1", 1, "host", [], at=SystemClock().now())

    assert logs.read("run-1", 1, after=None, limit=10).lines == ()
    assert logs.read("run-1", 1, after="later", limit=10).next == "later"


# -- identifiers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [SequentialIds(), RandomIds()])
def test_identifiers_are_fresh_and_say_their_kind(ids: Ids) -> None:
    made = {ids.new("run") for _ in range(50)}

    assert len(made) == 50
    assert all(each.startswith("run-") for each in made)


@pytest.mark.parametrize("ids", [SequentialIds(), RandomIds()])
def test_an_external_id_is_fresh_and_of_32_hexadecimal_digits(ids: Ids) -> None:
    made = [ids.external_id() for _ in range(50)]

    assert len(set(made)) == 50
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in made)


def test_the_clock_tells_utc() -> None:
    offset = SystemClock().now().utcoffset()

    assert offset is not None
    assert not offset
