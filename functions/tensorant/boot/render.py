"""Renders what a machine runs first: EC2 user data, from the files beside this module."""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources

USER_DATA_LIMIT_BYTES = 16_384
"""EC2's limit, before base64 (API reference, RunInstances)."""

_READABLE = ("deadline.sh", "boot.env")
"""Files that stay text: the one that needs no other file, and what differs from machine to machine."""
_COMPRESSED = ("tensorant-run.service", "run.sh", "preflight.sh", "agent.py")
"""Those that would not fit as text."""
_PLAIN = re.compile(r"[A-Za-z0-9._~:/?&=%+,{}<>@-]+")
"""Characters that mean nothing to a shell inside double quotes, and nothing to YAML there either."""


class UserDataTooLargeError(ValueError):
    """The rendered user data would be refused by EC2."""


@dataclass(frozen=True)
class BootParameters:
    """What one machine must know at its first moment. Nothing in it is secret but the token."""

    agent_url: str
    """With its version, for instance `https://…/agent/v1`."""
    token: str
    """One-time; or a placeholder, where the result is stored."""
    run_id: str
    attempt: int
    deadline_seconds: int
    """From boot until the machine turns itself off, downloads included."""
    recovery_window_seconds: int
    """The same, for every later boot."""
    release_wait_seconds: int
    """How long a machine whose work is over waits for its release before it turns itself off."""
    min_free_disk_gib: int
    contact_seconds: int = 600
    """How long a machine tries to reach the agent API before it gives up."""
    retry_seconds: float = 5
    """The first pause between two tries."""

    def __post_init__(self) -> None:
        for name in ("agent_url", "token", "run_id"):
            if not _PLAIN.fullmatch(getattr(self, name)):
                raise ValueError(f"{name} is empty, or has characters that user data can't carry.")
        if "/" in self.run_id or self.run_id.startswith("."):
            raise ValueError(
                "run_id names a directory on the machine; it can't have slashes or begin with a dot."
            )
        if min(self.deadline_seconds, self.recovery_window_seconds, self.attempt) < 1:
            raise ValueError("attempt, deadline_seconds and recovery_window_seconds begin at 1.")


def user_data(boot: BootParameters) -> str:
    """A `#cloud-config` document for one machine.

    Raises `UserDataTooLargeError` past EC2's limit.
    """
    text = _template()
    for name, value in _values(boot).items():
        text = text.replace(f"@{name}@", str(value))
    if (size := len(text.encode())) > USER_DATA_LIMIT_BYTES:
        raise UserDataTooLargeError(f"User data has {size} bytes; EC2 takes {USER_DATA_LIMIT_BYTES}.")
    return text


def _values(boot: BootParameters) -> dict[str, str | float]:
    return {
        "agent_url": boot.agent_url,
        "attempt_name": f"{boot.run_id}-{boot.attempt}",
        "deadline_seconds": boot.deadline_seconds,
        "recovery_window_seconds": boot.recovery_window_seconds,
        "release_wait_seconds": boot.release_wait_seconds,
        "min_free_disk_gib": boot.min_free_disk_gib,
        "contact_seconds": boot.contact_seconds,
        "retry_seconds": boot.retry_seconds,
        "token": boot.token,
    }


@cache
def _template() -> str:
    """The cloud-config with every `@file@` replaced by that file."""
    text = _read("cloud-config.yaml")
    for name in _READABLE:
        placeholder = re.compile(rf"^( *)@{re.escape(name)}@\n", re.MULTILINE)
        text = placeholder.sub(partial(_indented, _read(name)), text)
    for name in _COMPRESSED:
        text = text.replace(f"@{name}@", _compressed(_read(name)))
    return text


def _indented(content: str, placeholder: re.Match[str]) -> str:
    return "".join(f"{placeholder[1]}{line}\n" if line else "\n" for line in content.splitlines())


def _compressed(content: str) -> str:
    """As cloud-init's `gz+b64`; without a time, so that the same file always gives the same text."""
    return b64encode(gzip.compress(content.encode(), mtime=0)).decode()


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
