"""Executions that failed, timed out or were stopped in the console: their machines are not forgotten."""

from __future__ import annotations

import json
from typing import Any

from tensorant import bootstrap


def handler(event: dict[str, Any], _context: object) -> None:
    request = json.loads(event["detail"]["input"])
    if "run_id" in request:
        bootstrap.execution_ends().ended(str(request["run_id"]))
