"""Watching a run to its end: live on a terminal, one line for each change elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from tensorant_cli.client import ApiClient
from tensorant_cli.errors import CliError
from tensorant_cli.formats import NONE, clock, duration, number, printable, usd, words
from tensorant_cli.http import Sleep
from tensorant_cli.models import RunStatus
from tensorant_cli.output import facts
from tensorant_cli.run_views import final_table, progress_text

POLL_SECONDS = 2.0
TENTHS = 10
"""Lines for progress within a phase: one for each tenth of the steps."""

Now = Callable[[], datetime]


def watch(
    client: ApiClient,
    organization_id: str,
    run_id: str,
    console: Console,
    *,
    poll_seconds: float = POLL_SECONDS,
    sleep: Sleep = time.sleep,
    now: Now = lambda: datetime.now(UTC),
) -> RunStatus:
    """Show a launched run until it has an outcome and its machine is where it is meant to be.

    Ends with the table of outcome, machine and cost. Raises `CliError` for a draft. Only looks: stopping to
    watch changes nothing of the run.
    """
    status = client.run(organization_id, run_id)
    if status.run.launched_at is None:
        raise CliError(
            f"The run {run_id} is a draft.", mend=f"Launch it first: tensorant runs launch {run_id}."
        )
    show = _live if console.is_terminal else _lines

    def following() -> RunStatus:
        sleep(poll_seconds)
        return client.run(organization_id, run_id)

    status = show(status, following, console, now)
    console.print(final_table(status))
    return status


def _live(status: RunStatus, following: Callable[[], RunStatus], console: Console, now: Now) -> RunStatus:
    with Live(_panel(status, now()), console=console, auto_refresh=False, transient=True) as live:
        while not status.ended:
            status = following()
            live.update(_panel(status, now()), refresh=True)
    return status


def _lines(status: RunStatus, following: Callable[[], RunStatus], console: Console, now: Now) -> RunStatus:
    printed: tuple[object, ...] | None = None
    warned: set[str] = set()
    while True:
        for message in [each.message for each in status.warnings if each.message not in warned]:
            console.print(f"{clock(now())}  warning: {printable(message)}", soft_wrap=True)
            warned.add(message)
        if (mark := _milestone(status)) != printed:
            console.print(_line(status, now()), soft_wrap=True)
            printed = mark
        if status.ended:
            return status
        status = following()


def _milestone(status: RunStatus) -> tuple[object, ...]:
    """What is worth a line when it changes."""
    machine = status.machine
    return (
        status.phase,
        status.outcome,
        (machine.attempt, machine.state) if machine else None,
        _tenth(status) if status.phase == "training" else None,
    )


def _tenth(status: RunStatus) -> int | None:
    progress = status.progress
    if progress is None or progress.step is None or not progress.steps_total:
        return None
    return progress.step * TENTHS // progress.steps_total


def _line(status: RunStatus, at: datetime) -> str:
    parts = [clock(at), status.phase]
    if status.phase == "training" and status.progress is not None:
        parts.append(progress_text(status.progress))
    if status.outcome is not None:
        parts.append(words(status.outcome))
    if status.machine is not None:
        parts.append(f"machine {words(status.machine.state)}")
    parts.append(f"{usd(status.cost_usd)} so far")
    return printable("  ".join(parts))


def _panel(status: RunStatus, at: datetime) -> RenderableType:
    progress, run, machine = status.progress, status.run, status.machine
    step = progress.step if progress and progress.step is not None else 0
    total = progress.steps_total if progress and progress.steps_total else None
    pairs = {
        "Run": f"{run.id} ({run.name})",
        "Phase": status.phase,
        "Step": f"{step}/{total}" if total else NONE,
        "Loss": _losses(status),
        "Time left": duration(progress.seconds_left)
        if progress and progress.seconds_left is not None
        else NONE,
        "Limit": f"{duration((run.deadline_at - at).total_seconds())} left" if run.deadline_at else NONE,
        "Machine": f"{words(machine.state)} ({machine.instance_type})" if machine else NONE,
        "Cost so far": usd(status.cost_usd),
        **({"Warning": status.warnings[-1].message} if status.warnings else {}),
    }
    bar = ProgressBar(total=float(total) if total else None, completed=float(step), width=50, pulse=False)
    return Group(facts(pairs), bar if total else Text())


def _losses(status: RunStatus) -> str:
    progress = status.progress
    if progress is None or progress.loss is None:
        return NONE
    if progress.first_loss is None:
        return number(progress.loss)
    return f"{number(progress.loss)} (first {number(progress.first_loss)})"
