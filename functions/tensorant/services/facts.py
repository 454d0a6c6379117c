"""Facts of a run's timeline, named once."""

from __future__ import annotations

from datetime import datetime

from tensorant.domain.failures import Failure
from tensorant.domain.machines import Machine
from tensorant.domain.runs import Run
from tensorant.domain.timeline import Fact


def run_fact(run: Run, kind: str, message: str = "", *, at: datetime, source: str) -> Fact:
    """A fact whose id follows from the run's version: the write that it describes happens once."""
    return Fact(
        run_id=run.id, id=f"run-{run.version + 1}-{kind}", at=at, kind=kind, source=source, message=message
    )


def machine_fact(machine: Machine, kind: str, message: str = "", *, at: datetime, source: str) -> Fact:
    """A fact of one attempt, once for each version of its machine."""
    return Fact(
        run_id=machine.run_id,
        id=f"machine-{machine.attempt}-{machine.version + 1}-{kind}",
        at=at,
        kind=kind,
        source=source,
        message=message,
        attempt=machine.attempt,
    )


def told(failure: Failure) -> str:
    """A failure in one line, with its mend."""
    return f"{failure.message} {failure.mend}".strip()
