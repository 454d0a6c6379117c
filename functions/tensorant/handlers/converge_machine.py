"""Brings a machine to its goal: the states that release and stop, and those that confirm it."""

from __future__ import annotations

from typing import Any

from tensorant import bootstrap
from tensorant.domain.machines import Goal
from tensorant.handlers.tasks import answer, step_of


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    goal = Goal[str(event["goal"]).upper()]
    step = bootstrap.converger().toward(step_of(event), goal, confirm=bool(event["confirm"]))
    return answer(step)
