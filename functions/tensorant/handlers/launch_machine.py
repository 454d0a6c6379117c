"""Asks for the run's next candidate."""

from __future__ import annotations

from typing import Any

from tensorant import bootstrap
from tensorant.handlers.tasks import answer, step_of


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    return answer(bootstrap.asker().ask(step_of(event)))
