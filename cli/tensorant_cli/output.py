"""What is printed: answers to stdout; assumptions, progress and errors to stderr."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

from tensorant_cli.errors import ApiError, CliError, Problem
from tensorant_cli.formats import printable
from tensorant_cli.transfer import Advance

PIPE_COLUMNS = 200
"""Where there is no terminal, lines are wide enough that ids stay whole."""

GOOD = frozenset({"ok", "connected", "valid", "succeeded", "released"})
BAD = frozenset({"failed", "invalid", "blocks"})
OPEN = frozenset({"warning", "needs_recovery", "retained", "cancelled"})


def console(*, stderr: bool = False) -> Console:
    """A console that takes text as it is: no markup, no highlighting."""
    made = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not made.is_terminal:
        made.width = PIPE_COLUMNS
    return made


def note(text: str) -> None:
    """Say what was assumed, done, or can be done next."""
    console(stderr=True).print(Text(printable(text), style="dim"), soft_wrap=True)


def say(text: str) -> None:
    console().print(printable(text), soft_wrap=True)


def say_json(view: BaseModel | Sequence[BaseModel]) -> None:
    """One view as an object, or several as `{"items": […]}`, as the API has them."""
    body: object
    if isinstance(view, BaseModel):
        body = view.model_dump(mode="json")
    else:
        body = {"items": [each.model_dump(mode="json") for each in view]}
    print(json.dumps(body, indent=2))


def table(title: str | None, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, overflow="fold")
    for row in rows:
        made.add_row(*(cell(value) for value in row))
    return made


def facts(pairs: Mapping[str, str]) -> Table:
    """Names and values, one a line."""
    made = Table(show_header=False, box=None, pad_edge=False)
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs.items():
        made.add_row(cell(name), cell(value))
    return made


def cell(value: str) -> Text:
    """A value, coloured if it is a state."""
    name = value.replace(" ", "_")
    style = next((style for states, style in STYLES if name in states), "")
    return Text(printable(value), style=style)


STYLES = ((GOOD, "green"), (BAD, "red"), (OPEN, "yellow"))


def show_error(error: CliError) -> None:
    """What, where and the mend, for every fault of the request."""
    out = console(stderr=True)
    for problem in error.problems:
        _show_problem(out, problem)
    if isinstance(error, ApiError) and error.request_id:
        out.print(Text(f"Request id: {printable(error.request_id)}", style="dim"))


def _show_problem(out: Console, problem: Problem) -> None:
    told = problem.field and problem.message.startswith(problem.field)
    where = f" ({printable(problem.field)})" if problem.field and not told else ""
    line = Text.assemble(("Error", "bold red"), f"{where}: {printable(problem.message)}")
    out.print(line, soft_wrap=True)
    if problem.mend:
        out.print(Text.assemble(("Mend", "bold"), f": {printable(problem.mend)}"), soft_wrap=True)


@contextlib.contextmanager
def transfer_bar(title: str, total: int | None) -> Iterator[Advance]:
    """A bar on a terminal, nothing elsewhere."""
    out = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=out, disable=not out.is_terminal, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda count: progress.advance(task, count)


@contextlib.contextmanager
def waiting(title: str) -> Iterator[None]:
    """A spinner on a terminal; elsewhere one line."""
    out = console(stderr=True)
    if not out.is_terminal:
        note(title)
        yield
        return
    with out.status(Text(title)):
        yield
