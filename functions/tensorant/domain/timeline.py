"""The record of a run: facts, written with the state they describe and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that happened. `kind` is past tense and stable; `source` is who says so.

    `id` is unique within the run; writing the same id twice is refused, which makes repeats harmless.
    """

    run_id: str
    id: str
    at: datetime
    kind: str
    source: str
    message: str = ""
    attempt: int | None = None
