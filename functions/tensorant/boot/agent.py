"""What a machine's host says to the control plane: introduces itself, reports, sends heartbeats and its log.

Runs on the host's own python3 (3.8 or newer), so it needs the standard library alone. Its settings are
the environment that run.sh exports. Exit status: 0 done, 3 the control plane does not want this machine,
1 anything else; standard output then has the reason.
"""

from __future__ import annotations

import argparse
import fcntl
import http.client
import json
import os
import secrets
import socket
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

REFUSED = 3
REFUSALS = {
    401,
    409,
    410,
}  # unknown token, token bound by another machine, attempt over; a lost race is a 503
CALL_SECONDS = 30
KNOCK_SECONDS = 10
REACH_SECONDS = 60
REPORT_SECONDS = 120
LOG_SECONDS = 10
LONGEST_PAUSE_SECONDS = 60
LONGEST_MESSAGE = 2000
LINES_PER_CHUNK = 1000
BYTES_PER_CHUNK = 200_000  # of JSON, far below what a Lambda function takes; the last line may go past it
TROUBLE = (OSError, ValueError, http.client.HTTPException)
Answer = TypeVar("Answer")


class RefusedError(Exception):
    """The control plane answered that this machine is not wanted."""


def main() -> int:
    asked = command_line().parse_args()
    try:
        if asked.command == "exchange":
            exchange()
        elif asked.command == "heartbeats":
            heartbeats()
        elif asked.command == "reach":
            reach(asked.what, asked.image)
        else:
            ship_log(patience=LOG_SECONDS)
            report(asked)
    except RefusedError as error:
        note(str(error))
        return REFUSED
    except TROUBLE as error:
        note(f"{asked.command}: {error!r}")
        sys.stdout.write(explained(error) + "\n")
        return 1
    return 0


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("exchange")
    commands.add_parser("heartbeats")
    reach_parser = commands.add_parser("reach")
    reach_parser.add_argument("what", choices=["registry", "storage"])
    reach_parser.add_argument("--image", default="")
    report_parser = commands.add_parser("report")
    report_parser.add_argument("type")
    report_parser.add_argument("--code")
    report_parser.add_argument("--message", default="")
    report_parser.add_argument("--exit-code", type=int)
    return parser


def exchange() -> None:
    """Trade the one-time token for a session; the same nonce may ask again when an answer got lost."""
    url = os.environ["AGENT_URL"]
    asked = {"token": Path(os.environ["TOKEN_FILE"]).read_text(encoding="utf-8").strip(), "nonce": nonce()}
    answer = post(url, "sessions", asked, patience=float(os.environ["CONTACT_SECONDS"]))
    job = answer["job"]
    session = {
        "url": url,
        "session_token": answer["session_token"],
        "heartbeat_seconds": answer["heartbeat_seconds"],
        "deadline_at": job["deadline_at"],
        "run_id": job["run_id"],
        "attempt": job["attempt"],
    }
    write_private(Path(os.environ["SESSION_FILE"]), json.dumps(session))
    sys.stdout.write(job["image"] + "\n")


def nonce() -> str:
    """Made once, stored before it is first sent."""
    path = state("nonce")
    if not path.exists():
        write_private(path, secrets.token_hex(32))
    return path.read_text(encoding="utf-8")


def heartbeats() -> None:
    """One now and one every interval, until killed, with the log's new lines. What gets lost is not repeated."""
    session = read_session()
    while True:
        try:
            call("heartbeats", {}, patience=0)
        except TROUBLE as error:
            note(f"no heartbeat: {explained(error)}")
        ship_log(patience=0)
        time.sleep(session["heartbeat_seconds"])


def reach(what: str, image: str) -> None:
    """Raise what stands between this machine and the image registry or the storage; any HTTP answer is good."""
    url = registry_url(image) if what == "registry" else storage_url()
    if url:
        patience = min(REACH_SECONDS, float(os.environ["CONTACT_SECONDS"]))
        patiently(lambda: knock(url), url, patience)


def registry_url(image: str) -> str:
    """Docker's rule: what stands before the first slash is a registry if it looks like a host."""
    first, slash, _ = image.partition("/")
    named = slash and first != "docker.io" and (first == "localhost" or "." in first or ":" in first)
    return f"https://{first if named else 'registry-1.docker.io'}/v2/"


def storage_url() -> str:
    """Where this attempt's presigned URLs lead; empty if they can't be had, which the trainer will tell better."""
    try:
        grants = call("grants", {}, patience=LOG_SECONDS)
    except TROUBLE as error:
        note(f"grants: {explained(error)}")
        return ""
    place = urllib.parse.urlsplit(grants["archive_put_url"])
    return f"{place.scheme}://{place.netloc}/"


class Doorstep(urllib.request.HTTPRedirectHandler):
    """Goes nowhere else: S3 sends visitors to its product page, which this machine need not reach."""

    def redirect_request(self, *_: Any) -> None:
        return None


def knock(url: str) -> None:
    try:
        urllib.request.build_opener(Doorstep).open(url, timeout=KNOCK_SECONDS).close()
    except urllib.error.HTTPError as error:
        error.close()


def report(asked: argparse.Namespace) -> None:
    event = {
        "source": "host",
        "seq": next_number("events"),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "type": asked.type,
        "code": asked.code,
        "message": asked.message[:LONGEST_MESSAGE],
        "exit_code": asked.exit_code,
    }
    call("events", {"events": [event]}, patience=REPORT_SECONDS)


def ship_log(*, patience: float) -> None:
    """Send the host's lines that were not sent yet, in numbered chunks.

    A chunk that fails is sent again by the next call, under the same number and from the same line on.
    Whoever calls goes on in any case.
    """
    try:
        with state("shipping").open("a") as lock, Path(os.environ["HOST_LOG"]).open("rb") as log:
            fcntl.flock(lock, fcntl.LOCK_EX)  # heartbeats and reports come from processes of their own
            place = state("shipped")
            number, start = json.loads(place.read_text(encoding="utf-8")) if place.exists() else (0, 0)
            log.seek(start)
            while lines := next_lines(log):
                call("logs", {"source": "host", "seq": number, "lines": lines}, patience=patience)
                number += 1
                write_private(place, json.dumps([number, log.tell()]))
    except TROUBLE as error:
        note(f"log not shipped: {explained(error)}")


def next_lines(log: BinaryIO) -> list[str]:
    """The next whole lines, as many as one chunk takes; the file's last line may still be being written."""
    lines: list[str] = []
    size = 0
    while len(lines) < LINES_PER_CHUNK and size < BYTES_PER_CHUNK:
        start = log.tell()
        line = log.readline()
        if not line.endswith(b"\n"):
            log.seek(start)
            break
        lines.append(line.decode(errors="replace").rstrip("\n")[:LONGEST_MESSAGE])
        size += len(json.dumps(lines[-1]))
    return lines


def call(path: str, body: dict[str, Any], *, patience: float) -> dict[str, Any]:
    session = read_session()
    return post(session["url"], path, body, token=session["session_token"], patience=patience)


def post(
    url: str, path: str, body: dict[str, Any], *, patience: float, token: str | None = None
) -> dict[str, Any]:
    request = urllib.request.Request(f"{url}/{path}", json.dumps(body).encode(), method="POST")  # noqa: S310 - from our own user data
    request.add_header("Content-Type", "application/json")
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    return patiently(lambda: send(request), path, patience)


def patiently(attempt: Callable[[], Answer], what: str, seconds: float) -> Answer:
    """Try, and try again with growing pauses for so long; then the last error is raised."""
    give_up_at = time.monotonic() + seconds
    pause = float(os.environ["RETRY_SECONDS"])
    while True:
        try:
            return attempt()
        except TROUBLE as error:
            if time.monotonic() + pause > give_up_at:
                raise
            note(f"{what}: {explained(error)}; again in {pause:g} s")
        time.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


def send(request: urllib.request.Request) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(request, timeout=CALL_SECONDS) as response:  # noqa: S310 - as above
            answer: dict[str, Any] = json.loads(response.read() or b"{}")
            return answer
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in REFUSALS:
            raise RefusedError(f"refused with {error.code}") from error
        raise


def explained(error: Exception) -> str:
    """Trouble on the way, in the words of the one who can mend it."""
    if isinstance(error, urllib.error.HTTPError):
        return f"it answered {error.code}"
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, socket.gaierror):
        return f"its name can't be resolved (DNS: {reason.strerror})"
    if isinstance(reason, ssl.SSLError):
        return f"TLS failed, something on the way may intercept it ({reason})"
    if isinstance(reason, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(reason, (socket.timeout, TimeoutError)):  # two things before Python 3.10
        return "no answer in time: a firewall or a missing route may drop it"
    return str(reason) or type(reason).__name__


def next_number(name: str) -> int:
    """Counts up on disk: a repeated number means a repeated message."""
    path = state(name)
    number = int(path.read_text(encoding="utf-8")) + 1 if path.exists() else 0
    write_private(path, str(number))
    return number


def read_session() -> dict[str, Any]:
    session: dict[str, Any] = json.loads(Path(os.environ["SESSION_FILE"]).read_text(encoding="utf-8"))
    return session


def state(name: str) -> Path:
    return Path(os.environ["STATE"], name)


def write_private(path: Path, text: str) -> None:
    """Whole or not at all, readable by root alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)


def note(text: str) -> None:
    sys.stderr.write(f"tensorant: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
