"""A trainer that trains nothing, for tests of the host: `train --session FILE --data DIRECTORY`.

STAND_IN_TRAINER says how it ends: `completes`, `crashes`, `hangs`, `loses_docker`, as if Docker had gone away
under it, or `broken`, which dies before it has said or done anything. Standard library alone: it starts at once.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["train"])
    parser.add_argument("--session", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    asked = parser.parse_args()
    if os.environ["STAND_IN_TRAINER"] == "broken":
        sys.exit("ModuleNotFoundError: No module named 'torch'")
    session = json.loads(asked.session.read_text())
    report(session, 0, "started")
    (asked.data / "dataset.jsonl").write_bytes(b"{}")
    match os.environ["STAND_IN_TRAINER"]:
        case "completes":
            (asked.data / "adapter.zip").write_bytes(b"an adapter")
            report(session, 1, "completed")
        case "crashes":
            sys.exit("ImportError: libcuda.so.1: cannot open shared object file")
        case "hangs":
            time.sleep(600)
        case "loses_docker":
            return 125  # of `docker run` itself: "error waiting for container"
    return 0


def report(session: dict[str, Any], number: int, kind: str) -> None:
    event = {"source": "trainer", "seq": number, "at": "2026-01-01T00:00:00Z", "type": kind}
    request = urllib.request.Request(
        f"{session['url']}/events",
        json.dumps({"events": [event]}).encode(),
        {"Authorization": f"Bearer {session['session_token']}"},
    )
    with urllib.request.urlopen(request, timeout=10):
        pass


if __name__ == "__main__":
    sys.exit(main())
