"""Where a connection's credentials come from: never from the command's arguments, which others can see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import typer

from tensorant_cli.errors import CliError
from tensorant_cli.output import note
from tensorant_cli.profiles import Profile

ACCESS_KEY_ID = "AWS_ACCESS_KEY_ID"
SECRET_ACCESS_KEY = "AWS_SECRET_ACCESS_KEY"
SESSION_TOKEN = "AWS_SESSION_TOKEN"
EXPIRATION = "AWS_CREDENTIAL_EXPIRATION"
"""What `aws configure export-credentials --format env` prints beside the other three."""

RUNPOD_STORAGE = "runpod_storage"
RUNPOD_ACCESS_KEY_ID = "RUNPOD_S3_ACCESS_KEY_ID"
RUNPOD_SECRET_ACCESS_KEY = "RUNPOD_S3_SECRET_ACCESS_KEY"
"""Names of our own: RunPod's guides use AWS's, where the keys of an AWS account may be as well."""

TEMPORARY = "ASIA"
"""How the id of a temporary access key begins (IAM User Guide, "Understanding unique ID prefixes")."""

Prompt = Callable[[str], str]


def ask_hidden(text: str) -> str:
    """Asked at the terminal and not shown. Raises `CliError` where nobody answers."""
    return _ask(text, hidden=True)


def ask_shown(text: str) -> str:
    """Asked at the terminal; the answer is no secret. Raises `CliError` where nobody answers."""
    return _ask(text, hidden=False)


def _ask(text: str, *, hidden: bool) -> str:
    try:
        return str(typer.prompt(text, hide_input=hidden, err=True))
    except typer.Abort as abort:
        raise CliError(
            f"{text}: no answer.",
            mend=f"Answer at a terminal; a connection's keys are also read from {ACCESS_KEY_ID} and "
            f"{SECRET_ACCESS_KEY}.",
        ) from abort


@dataclass(frozen=True)
class Keys:
    """Where an access key is looked for, and when it ends if it is a temporary one."""

    profile: Profile
    environ: Mapping[str, str]
    expires_at: str | None = None
    ask_secret: Prompt = ask_hidden
    ask: Prompt = ask_shown

    def of(self, kind: str) -> dict[str, str]:
        """As the API takes them: local mode's own, else the environment's, else asked for, hidden.

        In local mode the environment is not read: the keys of a real account have no business there.
        Raises `CliError` for temporary keys whose end nobody says.
        """
        local: dict[str, Any] = self.profile.connections.get(kind, {})
        if credentials := local.get("credentials"):
            note("Credentials: local mode's own.")
            return {name: str(value) for name, value in credentials.items() if value}
        if kind == RUNPOD_STORAGE:
            return self._of_runpod()
        if self.environ.get(ACCESS_KEY_ID) and self.environ.get(SECRET_ACCESS_KEY):
            note(f"Credentials: {ACCESS_KEY_ID} and {SECRET_ACCESS_KEY} of the environment.")
            return self._of_environment()
        return self._asked_for()

    def _of_runpod(self) -> dict[str, str]:
        key_id, secret = self.environ.get(RUNPOD_ACCESS_KEY_ID), self.environ.get(RUNPOD_SECRET_ACCESS_KEY)
        if key_id and secret:
            note(f"Credentials: {RUNPOD_ACCESS_KEY_ID} and {RUNPOD_SECRET_ACCESS_KEY} of the environment.")
            return {"access_key_id": key_id, "secret_access_key": secret}
        return {
            "access_key_id": self.ask_secret("S3 access key (user_…)").strip(),
            "secret_access_key": self.ask_secret("S3 secret (rps_…)").strip(),
        }

    def _of_environment(self) -> dict[str, str]:
        found = {
            "access_key_id": self.environ[ACCESS_KEY_ID],
            "secret_access_key": self.environ[SECRET_ACCESS_KEY],
        }
        token = self.environ.get(SESSION_TOKEN)
        if not token:
            return found
        expires_at = self.expires_at or self.environ.get(EXPIRATION)
        if not expires_at:
            raise CliError(
                "Not given: --expires-at.",
                mend="Temporary keys end: say when, or let `aws configure export-credentials --format env` "
                f"set {EXPIRATION} beside the keys.",
            )
        return {**found, "session_token": token, "expires_at": expires_at}

    def _asked_for(self) -> dict[str, str]:
        found = {
            "access_key_id": self.ask_secret("Access key id").strip(),
            "secret_access_key": self.ask_secret("Secret access key").strip(),
        }
        if not found["access_key_id"].startswith(TEMPORARY):
            return found
        return {
            **found,
            "session_token": self.ask_secret("Session token").strip(),
            "expires_at": self.expires_at or self.ask("Expires at, as 2026-03-01T20:00:00Z").strip(),
        }
