"""Connections go to allowed addresses only, whatever a name resolves to at that moment."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from botocore.awsrequest import AWSRequest
from botocore.exceptions import EndpointConnectionError

from tensorant.adapters.s3 import S3Stores
from tensorant.adapters.s3.errors import NotReachedError
from tensorant.adapters.s3.guard import GuardedSession
from tensorant.domain.connections import CheckVerdict, S3Settings
from tensorant.domain.endpoints import forbidden
from tensorant.domain.errors import Storage
from tests.support.canned_server import CannedServer
from tests.support.fakes import MemorySecrets
from tests.support.worlds import S3, s3_connection

PUBLIC = "93.184.215.14"
KEYS = {"access_key_id": "minio-user", "secret_access_key": "minio-secret"}


@pytest.fixture
def server() -> Iterator[CannedServer]:
    with CannedServer(lambda: (200, "hello")).serving() as server:
        yield server


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The world's DNS: each look-up of a name takes its next answer, and its last one stays."""
    answers: dict[str, list[str]] = {}
    real = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *args: Any, **options: Any) -> Any:
        if host not in answers:
            return real(host, port, *args, **options)
        found = answers[host].pop(0) if len(answers[host]) > 1 else answers[host][0]
        return real(found, port, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answers


def post(url: str, *, private_allowed: bool = False) -> Any:
    session = GuardedSession(partial(forbidden, private_allowed=private_allowed), read_seconds=5)
    try:
        return session.send(AWSRequest(method="POST", url=url, data=b"a=1").prepare())
    finally:
        session.close()


def test_what_is_allowed_is_reached(server: CannedServer) -> None:
    assert post(server.url, private_allowed=True).content == b"hello"
    assert server.asked == [{"a": "1"}]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_private_address_is_not_connected_to(server: CannedServer, scheme: str) -> None:
    with pytest.raises(NotReachedError, match="address of the machine itself"):
        post(server.url.replace("http:", f"{scheme}:"))
    assert server.asked == []


def test_a_name_that_leads_inside_is_not_connected_to(
    server: CannedServer, names: dict[str, list[str]]
) -> None:
    names["storage.example"] = ["127.0.0.1"]

    with pytest.raises(NotReachedError):
        post(server.url.replace("127.0.0.1", "storage.example"))
    assert server.asked == []


def test_a_name_that_changes_after_it_was_looked_at_is_caught_at_the_socket(
    server: CannedServer, names: dict[str, list[str]]
) -> None:
    names["storage.example"] = [PUBLIC, "127.0.0.1"]  # what we look up; what the socket looks up

    with pytest.raises(NotReachedError):
        post(server.url.replace("127.0.0.1", "storage.example"))
    assert server.asked == []


def test_a_redirect_inside_is_not_followed(server: CannedServer) -> None:
    server.answer = lambda: (307, "")

    assert post(server.url, private_allowed=True).status_code == 307
    assert len(server.asked) == 1


def test_a_name_that_leads_nowhere_is_told_as_botocore_knows_it() -> None:
    with pytest.raises(EndpointConnectionError):
        post("http://nowhere.invalid")


def test_a_proxy_is_not_asked(server: CannedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    assert post(server.url, private_allowed=True).status_code == 200


def test_a_connection_whose_endpoint_turned_inside_fails_at_once_with_a_mend(
    server: CannedServer, names: dict[str, list[str]]
) -> None:
    names["storage.example"] = ["127.0.0.1"]
    place = S3Settings(
        region="auto",
        bucket="ours",
        endpoint_url=server.url.replace("127.0.0.1", "storage.example"),
        addressing_style="path",
    )
    storage = S3Stores(MemorySecrets({S3: KEYS})).open(s3_connection(settings=place))

    with pytest.raises(Storage) as caught:
        storage.head("a")
    assert caught.value.code == "endpoint_not_allowed"
    assert "storage.example" in caught.value.message

    (item,) = storage.check().items
    assert (item.name, item.verdict) == ("write", CheckVerdict.FAILED)
    assert "public addresses" in item.mend
    assert server.asked == []
