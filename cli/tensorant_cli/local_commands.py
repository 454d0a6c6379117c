"""`tensorant local up` and `tensorant demo`: the embedded cloud, which is an extra of its own."""

from __future__ import annotations

import importlib
from enum import StrEnum
from types import ModuleType
from typing import Annotated

import typer

from tensorant_cli.errors import CliError
from tensorant_cli.options import examples

app = typer.Typer(
    no_args_is_help=True, help="Local mode: Tensorant on this computer, without AWS, Docker or a GPU."
)


class DemoModel(StrEnum):
    """What the demo trains: a real small model, or a tiny random one that proves the path only."""

    SMOLLM2 = "smollm2"
    TINY = "tiny"


Model = Annotated[DemoModel, typer.Option(help="The base model to train.")]


@app.command(epilog=examples("tensorant local up"))
def up(*, model: Model = DemoModel.SMOLLM2) -> None:
    """Start local mode and keep it running until Ctrl-C.

    Use it from another terminal, in the same directory.
    """
    _end(_local("up").main(model=model.value))


def demo(*, model: Model = DemoModel.SMOLLM2) -> None:
    """Train a real adapter on this computer, from nothing to a released machine."""
    _end(_local("demo").main(model=model.value))


def _local(name: str) -> ModuleType:
    """A module of local mode. Raises `CliError` where the extra is not installed."""
    try:
        return importlib.import_module(f"tensorant_local.{name}")
    except ModuleNotFoundError as error:
        raise CliError(
            f"Local mode is not installed: {error.name} is missing.",
            mend="Install the extra: pip install 'tensorant[cli,local,infra]'.",
        ) from error


def _end(code: int | None) -> None:
    if code:
        raise typer.Exit(code)
