"""How long the embedded cloud takes to start, with its template cached, beside starting moto's server alone."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from rich.table import Table

from tensorant_local.aws.server import EmbeddedAws
from tensorant_local.cloud import LocalCloud


def table() -> Table:
    found = Table("what", "seconds", "ratio to the floor", title="Start of the embedded cloud")
    with LocalCloud():  # the template is cached from here on
        pass
    began = time.perf_counter()
    with EmbeddedAws() as aws:
        aws.client("dynamodb").list_tables()
        floor = time.perf_counter() - began
    found.add_row("floor: the AWS stand-in answers", f"{floor:.2f}", "1.0")
    with LocalCloud() as cloud:
        warm = cloud.startup_seconds["total"]
    found.add_row("everything, template cached", f"{warm:.2f}", f"{warm / floor:.1f}")
    with tempfile.TemporaryDirectory() as state, LocalCloud(state=Path(state)) as cloud:
        cold = cloud.startup_seconds["total"]
    found.add_row("everything, template synthesized", f"{cold:.2f}", f"{cold / floor:.1f}")
    return found
