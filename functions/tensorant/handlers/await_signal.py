"""Registers the workflow's wait; it ends by a signal, by silence or by the slow poll."""

from __future__ import annotations

from typing import Any

from tensorant import bootstrap
from tensorant.services.signals import wait


def handler(event: dict[str, Any], _context: object) -> None:
    wait(
        str(event["run_id"]),
        str(event["task_token"]),
        seen=int(event["signal"]),
        store=bootstrap.store(),
        workflow=bootstrap.workflow(),
    )
