"""Carries new facts from the table's stream to the deployment's event bus."""

from __future__ import annotations

from typing import Any

from tensorant import bootstrap


def handler(event: dict[str, Any], _context: object) -> None:
    facts = bootstrap.new_facts(event["Records"])
    if facts:
        bootstrap.bus().publish(facts)
