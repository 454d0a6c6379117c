"""EC2 state changes: they wake the run whose machine it is, and decide nothing."""

from __future__ import annotations

from typing import Any

from tensorant import bootstrap


def handler(event: dict[str, Any], _context: object) -> None:
    bootstrap.provider_events().instance_changed(
        str(event["account"]), str(event["region"]), str(event["detail"]["instance-id"])
    )
