"""Where a connection's credentials come from: never from the command's arguments, which others can see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import typer

from tensorant_cli.errors import CliError
from tensorant_cli.output import note
from tensorant_cli.profiles import Profile

ACCESS_KEY_ID = "AWS_ACCESS_KEY_ID"
SECRET_ACCESS_KEY = "AWS_SECRET_ACCESS_KEY"
SESSION_TOKEN = "AWS_SESSION_TOKEN"

Prompt = Callable[[str], str]


def ask_hidden(text: str) -> str:
    """Asked at the terminal and not shown. Raises `CliError` where nobody answers."""
    try:
        return str(typer.prompt(text, hide_input=True, err=True))
    except typer.Abort as abort:
        raise CliError(
            f"{text}: no answer.",
            mend=f"Answer at a terminal; a connection's keys are also read from {ACCESS_KEY_ID} and "
            f"{SECRET_ACCESS_KEY}.",
        ) from abort


def aws_credentials(
    profile: Profile, kind: str, environ: Mapping[str, str], *, prompt: Prompt = ask_hidden
) -> dict[str, str]:
    """As the API takes them: local mode's own, else the environment's, else asked for, hidden.

    In local mode the environment is not read: the keys of a real account have no business there.
    """
    local: dict[str, Any] = profile.connections.get(kind, {})
    if credentials := local.get("credentials"):
        note("Credentials: local mode's own.")
        return {name: str(value) for name, value in credentials.items() if value}
    if environ.get(ACCESS_KEY_ID) and environ.get(SECRET_ACCESS_KEY):
        note(f"Credentials: {ACCESS_KEY_ID} and {SECRET_ACCESS_KEY} of the environment.")
        return _of_environment(environ)
    return {
        "access_key_id": prompt("Access key id").strip(),
        "secret_access_key": prompt("Secret access key").strip(),
    }


def _of_environment(environ: Mapping[str, str]) -> dict[str, str]:
    credentials = {
        "access_key_id": environ[ACCESS_KEY_ID],
        "secret_access_key": environ[SECRET_ACCESS_KEY],
    }
    if token := environ.get(SESSION_TOKEN):
        credentials["session_token"] = token
    return credentials
