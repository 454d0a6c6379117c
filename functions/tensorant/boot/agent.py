"""What a machine's host says to the control plane: introduces itself, reports, sends heartbeats.

Runs on the host's own python3 (3.8 or newer), so it needs the standard library alone. Its settings are
the environment that run.sh exports. Exit status: 0 done, 3 the control plane does not want this machine,
1 anything else.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import secrets
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

REFUSED = 3
REFUSALS = {
    401,
    409,
    410,
}  # unknown token, token bound by another machine, attempt over; a lost race is a 503
CALL_SECONDS = 30
REPORT_SECONDS = 120
LOG_SECONDS = 10
LONGEST_PAUSE_SECONDS = 60
LONGEST_MESSAGE = 2000
LINES_PER_CHUNK = 1000


class RefusedError(Exception):
    """The control plane answered that this machine is not wanted."""


def main() -> int:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("exchange")
    commands.add_parser("heartbeats")
    report_parser = commands.add_parser("report")
    report_parser.add_argument("type")
    report_parser.add_argument("--code")
    report_parser.add_argument("--message", default="")
    report_parser.add_argument("--exit-code", type=int)
    asked = parser.parse_args()
    try:
        if asked.command == "exchange":
            exchange()
        elif asked.command == "heartbeats":
            heartbeats()
        else:
            ship_log()
            report(asked)
    except RefusedError as error:
        note(str(error))
        return REFUSED
    except (OSError, ValueError, http.client.HTTPException) as error:
        note(f"{type(error).__name__}: {error}")
        return 1
    return 0


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
    """One now and one every interval, until killed. A lost one is not sent again: the next one follows."""
    session = read_session()
    while True:
        try:
            call("heartbeats", {}, patience=0)
        except (OSError, ValueError, http.client.HTTPException) as error:
            note(f"no heartbeat: {error}")
        time.sleep(session["heartbeat_seconds"])


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


def ship_log() -> None:
    """The host's own lines that were not sent yet, before the event that may end this machine."""
    shipped = state("shipped")
    start = int(shipped.read_text(encoding="utf-8")) if shipped.exists() else 0
    lines = Path(os.environ["HOST_LOG"]).read_text(encoding="utf-8", errors="replace").splitlines()
    for first in range(start, len(lines), LINES_PER_CHUNK):
        chunk = [line[:LONGEST_MESSAGE] for line in lines[first : first + LINES_PER_CHUNK]]
        body = {"source": "host", "seq": next_number("logs"), "lines": chunk}
        try:
            call("logs", body, patience=LOG_SECONDS)
        except (OSError, ValueError, http.client.HTTPException) as error:
            note(f"log not shipped: {error}")
            return
        write_private(shipped, str(first + len(chunk)))


def call(path: str, body: dict[str, Any], *, patience: float) -> dict[str, Any]:
    session = read_session()
    return post(session["url"], path, body, token=session["session_token"], patience=patience)


def post(
    url: str, path: str, body: dict[str, Any], *, patience: float, token: str | None = None
) -> dict[str, Any]:
    """Send, and send again with growing pauses for `patience` seconds; then the last error is raised."""
    request = urllib.request.Request(f"{url}/{path}", json.dumps(body).encode(), method="POST")  # noqa: S310 - from our own user data
    request.add_header("Content-Type", "application/json")
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    give_up_at = time.monotonic() + patience
    pause = float(os.environ["RETRY_SECONDS"])
    while True:
        try:
            return send(request)
        except (OSError, ValueError, http.client.HTTPException) as error:
            if time.monotonic() + pause > give_up_at:
                raise
            note(f"{path}: {error}; again in {pause:g} s")
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
