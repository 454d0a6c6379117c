"""Options and arguments that several commands share, and how examples stand in a help text."""

from __future__ import annotations

from typing import Annotated, Any

import typer

OrganizationId = Annotated[
    str | None,
    typer.Option(
        "--organization-id",
        "--organization",
        metavar="ID",
        help="The organization: by default TENSORANT_ORGANIZATION, the one used last, or the only one.",
        show_default=False,
    ),
]

ProjectId = Annotated[
    str | None,
    typer.Option(
        "--project-id",
        "--project",
        metavar="ID",
        help="The project: by default the one used last, or the only one.",
        show_default=False,
    ),
]

RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run's id, or `last` for the one used last.")]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, as the API has it.")]

Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the result.")]


def examples(*lines: str) -> str:
    """An epilog with one example a line."""
    return "\n\n".join(("Examples:", *lines))


def given(**values: Any) -> dict[str, Any]:
    """What was given: the API has its own defaults."""
    return {name: value for name, value in values.items() if value is not None}
