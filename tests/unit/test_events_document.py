"""docs/events.md is what administrators write their rules by: it names what can be told."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tensorant.adapters.event_bridge import DETAIL_TYPE, SOURCE, EventBridge
from tensorant.contract import EventType
from tensorant.domain.machines import Goal
from tensorant.domain.maintenance import MACHINE_WARNING
from tensorant.domain.runs import Outcome
from tensorant.domain.timeline import Fact
from tensorant.domain.volumes import VOLUME_KEPT

DOCUMENT = (Path(__file__).parents[2] / "docs" / "events.md").read_text(encoding="utf-8")
SAMPLE, PATTERN = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL))

KINDS = [
    *(kind for kind in EventType if kind is not EventType.STEP),
    *(f"run_{outcome}" for outcome in Outcome),
    MACHINE_WARNING,
    VOLUME_KEPT,
    *(f"goal_{goal.name.lower()}" for goal in Goal if goal is not Goal.RUN),
]


class Bus:
    """Keeps the entries that are put."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []

    def put_events(self, *, Entries: list[dict[str, Any]]) -> dict[str, int]:  # noqa: N803 - as boto3 names it
        self.entries += Entries
        return {"FailedEntryCount": 0}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_named(kind: str) -> None:
    assert f"`{kind}`" in DOCUMENT


def test_the_sample_is_what_is_sent() -> None:
    bus = Bus()
    fact = Fact(
        run_id="run-9f86d081884c7d65",
        id="machine-1-4-machine_released",
        at=datetime(2026, 7, 20, 12, 30, 5, 123456, tzinfo=UTC),
        kind="machine_released",
        source="provider",
        attempt=1,
    )

    EventBridge(bus, "tensorant-events").publish([fact])  # type: ignore[arg-type]

    [entry] = bus.entries
    assert entry["EventBusName"] == "tensorant-events"
    assert (entry["Source"], entry["DetailType"]) == (SAMPLE["source"], SAMPLE["detail-type"])
    assert json.loads(entry["Detail"]) == SAMPLE["detail"]


def test_the_sample_rule_chooses_documented_events() -> None:
    assert (PATTERN["source"], PATTERN["detail-type"]) == ([SOURCE], [DETAIL_TYPE])
    assert PATTERN["detail"].keys() <= SAMPLE["detail"].keys()
    assert all(f"| `{kind}`" in DOCUMENT for kind in PATTERN["detail"]["kind"])
