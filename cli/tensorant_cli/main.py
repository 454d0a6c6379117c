"""The `tensorant` command: its parts, its options for all, and how errors are told."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tensorant_cli import (
    adapter_verify,
    connections,
    datasets,
    local_commands,
    login,
    organizations,
    output,
    projects,
    runs,
)
from tensorant_cli.errors import CliError
from tensorant_cli.options import examples
from tensorant_cli.session import surroundings_of


class CommandLine(TyperGroup):
    """Tells every `CliError` as what, why and the mend, and ends with exit code 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except CliError as error:
            output.show_error(error)
            raise typer.Exit(1) from None


app = typer.Typer(
    cls=CommandLine,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    help="Train LoRA adapters on the GPUs you already pay for.",
    epilog=examples(
        "tensorant organizations create Example",
        "tensorant connections create aws",
        "tensorant connections create s3",
        "tensorant projects create Assistant",
        "tensorant datasets upload demo/dataset.jsonl",
        "tensorant runs draft --help",
        "tensorant runs review",
        "tensorant runs launch",
        "tensorant runs watch",
        "tensorant runs adapter",
    ),
)


@app.callback()
def options(
    context: typer.Context,
    *,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A profile of `tensorant login`, or `local`; by default TENSORANT_PROFILE, then `default`, then "
            "local mode where it runs in this directory.",
            show_default=False,
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The API's address; by default TENSORANT_URL.", show_default=False),
    ] = None,
) -> None:
    context.obj = replace(surroundings_of(context), profile=profile, url=url)


for group, name in (
    (organizations.app, "organizations"),
    (connections.app, "connections"),
    (projects.app, "projects"),
    (datasets.app, "datasets"),
    (runs.app, "runs"),
    (adapter_verify.app, "adapter"),
    (local_commands.app, "local"),
):
    app.add_typer(group, name=name)

app.command()(login.login)
app.command()(organizations.me)
app.command()(local_commands.demo)
