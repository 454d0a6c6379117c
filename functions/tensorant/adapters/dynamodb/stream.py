"""Reading the table's stream: which of its records are new facts of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorant.adapters.dynamodb.items import unmarshalled, value
from tensorant.domain.timeline import Fact


def new_facts(records: Sequence[Mapping[str, Any]]) -> list[Fact]:
    """The facts that the records tell of, in their order; everything else in the table is passed over."""
    images = (record["dynamodb"]["NewImage"] for record in records if record["eventName"] == "INSERT")
    return [value(Fact, unmarshalled(image)) for image in images if image.get("kind", {}).get("S") == "Fact"]
