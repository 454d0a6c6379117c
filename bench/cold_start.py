"""What a function's cold start costs: importing its handler in a fresh process, beside importing boto3 alone."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from rich.table import Table

from tensorant import handlers

RUNS = 5
NOT_HANDLERS = {path.stem for path in Path(handlers.__path__[0]).glob("*views.py")} | {
    "__init__",
    "http",
    "problems",
    "requests",
    "tasks",
}
FLOOR = "import boto3; boto3.client('dynamodb', region_name='us-east-1')"


def table() -> Table:
    found = Table(
        "function", "imports, ms", "ratio to the floor", title="Cold start (median of 5, bytecode compiled)"
    )
    floor = milliseconds(FLOOR)
    found.add_row("floor: boto3 and a DynamoDB client", f"{floor:.0f}", "1.00")
    for name in sorted(path.stem for path in Path(handlers.__path__[0]).glob("*.py")):
        if name not in NOT_HANDLERS:
            took = milliseconds(f"import tensorant.handlers.{name}")
            found.add_row(name, f"{took:.0f}", f"{took / floor:.2f}")
    return found


def milliseconds(code: str) -> float:
    """From starting Python to its end, less an empty Python's, median of several; the first run only warms."""
    return max(0.0, _median(code) - _median("pass"))


def _median(code: str) -> float:
    environment = {**os.environ, "AWS_DEFAULT_REGION": "us-east-1"}
    took = []
    for _ in range(RUNS + 1):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took[1:])
