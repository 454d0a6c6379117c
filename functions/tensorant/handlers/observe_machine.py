"""Looks at a machine and decides what is next."""

from __future__ import annotations

from typing import Any

from tensorant import bootstrap
from tensorant.handlers.tasks import answer, step_of


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    return answer(bootstrap.observer().observe(step_of(event)))
