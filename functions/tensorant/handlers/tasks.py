"""What the state machine's functions share: the step in, the step out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from tensorant.domain.steps import Next, Step

_STEPS = TypeAdapter(Step)


def step_of(event: Mapping[str, Any]) -> Step:
    """The step of a task's payload; `next` is what the task will decide."""
    fields = ("run_id", "operation", "number")
    return _STEPS.validate_python(
        {
            **{name: event[name] for name in fields},
            "attempt": event.get("attempt", 0),
            "signal": event.get("signal", 0),
            "next": Next.END,
        }
    )


def answer(step: Step) -> dict[str, Any]:
    """The flat shape that the state machine selects from."""
    answered: dict[str, Any] = _STEPS.dump_python(step, mode="json")
    return answered
