"""The host's side of the agent API: the way out in words, and its log in chunks."""

from __future__ import annotations

import io
import json
import socket
import ssl
import subprocess
import sys
import threading
import urllib.error
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from tensorant.boot import agent
from tensorant.contract import EventType
from tests.support.archives import job_spec
from tests.support.fake_agent import TOKEN, FakeAgent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOGS = "/agent/v1/logs"
NOWHERE = "http://127.0.0.1:9"
"""The discard port, at which nobody listens."""


def told(answer: int) -> urllib.error.HTTPError:
    return urllib.error.HTTPError("https://example.com", answer, "", Message(), io.BytesIO())


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (
            urllib.error.URLError(socket.gaierror(-2, "Name or service not known")),
            "its name can't be resolved (DNS: Name or service not known)",
        ),
        (urllib.error.URLError(ConnectionRefusedError(111, "refused")), "the connection was refused"),
        (TimeoutError("timed out"), "no answer in time: a firewall or a missing route may drop it"),
        (
            urllib.error.URLError(TimeoutError("timed out")),
            "no answer in time: a firewall or a missing route may drop it",
        ),
        (
            urllib.error.URLError(ssl.SSLError(1, "certificate verify failed")),
            "TLS failed, something on the way may intercept it (certificate verify failed)",
        ),
        (
            urllib.error.URLError(OSError(101, "Network is unreachable")),
            "[Errno 101] Network is unreachable",
        ),
        (told(503), "it answered 503"),
        (ConnectionResetError(), "ConnectionResetError"),
    ],
)
def test_trouble_on_the_way_is_told_apart(trouble: Exception, words: str) -> None:
    assert agent.explained(trouble) == words


@pytest.mark.parametrize(
    ("image", "url"),
    [
        ("ghcr.io/acme/trainer@sha256:ab", "https://ghcr.io/v2/"),
        (
            "1234.dkr.ecr.us-east-1.amazonaws.com/trainer:1",
            "https://1234.dkr.ecr.us-east-1.amazonaws.com/v2/",
        ),
        ("registry:5000/trainer", "https://registry:5000/v2/"),
        ("localhost/trainer", "https://localhost/v2/"),
        ("acme/trainer", "https://registry-1.docker.io/v2/"),
        ("trainer", "https://registry-1.docker.io/v2/"),
        ("docker.io/acme/trainer", "https://registry-1.docker.io/v2/"),
    ],
)
def test_a_registry_is_found_by_dockers_rule(image: str, url: str) -> None:
    assert agent.registry_url(image) == url


@dataclass
class Host:
    """A host that has its session, and the API it talks to."""

    api: FakeAgent
    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "host.log"

    def say(self, *lines: str) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            log.writelines(f"{line}\n" for line in lines)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    with FakeAgent(job_spec()) as api:
        settings = {
            "STATE": str(tmp_path),
            "HOST_LOG": str(tmp_path / "host.log"),
            "SESSION_FILE": str(tmp_path / "session.json"),
            "RETRY_SECONDS": "0.01",
            "CONTACT_SECONDS": "0",
        }
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        session = {"url": api.url, "session_token": TOKEN, "heartbeat_seconds": 0.05}
        (tmp_path / "session.json").write_text(json.dumps(session))
        (tmp_path / "host.log").touch()
        yield Host(api, tmp_path)


def test_each_line_is_shipped_once(host: Host) -> None:
    host.say("one", "two")
    agent.ship_log(patience=0)
    agent.ship_log(patience=0)
    host.say("three")
    agent.ship_log(patience=0)

    assert host.api.log == ["one", "two", "three"]
    assert [chunk.seq for chunk in host.api.chunks] == [0, 1]


def test_a_chunk_that_failed_is_sent_again_under_its_number(host: Host) -> None:
    host.api.faults[LOGS].append(503)
    host.say("one")
    agent.ship_log(patience=0)
    host.say("two")
    agent.ship_log(patience=0)

    assert host.api.log == ["one", "two"]
    assert [chunk.seq for chunk in host.api.chunks] == [0]


def test_a_long_log_goes_in_chunks_of_a_thousand_lines(host: Host) -> None:
    host.say(*(str(number) for number in range(2001)))

    agent.ship_log(patience=0)

    assert [len(chunk.lines) for chunk in host.api.chunks] == [1000, 1000, 1]
    assert [chunk.seq for chunk in host.api.chunks] == [0, 1, 2]
    assert host.api.log == [str(number) for number in range(2001)]


def test_chunks_of_long_lines_are_cut_by_their_bytes(host: Host) -> None:
    """A line is cut to 2000 characters, six bytes each in JSON: the quotes make it 12,002, and 17 of them 204,034."""
    host.say(*(["ä" * 3000] * 40))

    agent.ship_log(patience=0)

    assert [len(chunk.lines) for chunk in host.api.chunks] == [17, 17, 6]
    assert set(host.api.log) == {"ä" * 2000}


def test_a_line_that_is_still_being_written_waits(host: Host) -> None:
    host.log.write_text("whole\nhal")
    agent.ship_log(patience=0)
    assert host.api.log == ["whole"]

    host.log.write_text("whole\nhalf\n")
    agent.ship_log(patience=0)

    assert host.api.log == ["whole", "half"]


def test_a_log_that_cannot_be_shipped_holds_up_no_report(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.api.faults[LOGS].append(400)
    host.say("one")
    monkeypatch.setattr(sys, "argv", ["agent.py", "report", "booted"])
    monkeypatch.setattr(agent, "LOG_SECONDS", 0)

    assert agent.main() == 0
    assert host.api.types() == [EventType.BOOTED]


def test_heartbeats_carry_the_log_along(host: Host) -> None:
    host.say("before")
    with subprocess.Popen([sys.executable, agent.__file__, "heartbeats"]) as beating:
        try:
            assert host.api.wait_until(lambda: host.api.log == ["before"], 30)
            host.say("meanwhile")
            assert host.api.wait_until(lambda: host.api.log == ["before", "meanwhile"], 30)
        finally:
            beating.terminate()


def test_any_answer_of_the_storage_is_good(host: Host) -> None:
    host.api.faults["/"].append(403)

    agent.reach("storage", "")

    assert "GET /" in host.api.calls


class SendsElsewhere(BaseHTTPRequestHandler):
    """As S3 sends who asks it for `/` to its product page."""

    def do_GET(self) -> None:
        self.send_response(307)
        self.send_header("Location", NOWHERE)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
        """Quiet."""


def test_a_storage_that_sends_visitors_elsewhere_is_in_reach(host: Host) -> None:
    """A private subnet need not reach where it sends them."""
    server = HTTPServer(("127.0.0.1", 0), SendsElsewhere)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    host.api.storage = f"http://127.0.0.1:{server.server_port}"

    agent.reach("storage", "")

    thread.join()
    server.server_close()


def test_a_storage_out_of_reach_is_trouble(host: Host) -> None:
    host.api.storage = NOWHERE

    with pytest.raises(OSError, match="refused"):
        agent.reach("storage", "")
