"""What an administrator chooses about a deployment, read from CDK context and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Context = Callable[[str], Any]
    """Looks a context value up; None if there is none."""

DEFAULT_ID = "tensorant"
DEFAULT_ADMIN_GROUP = "platform-admins"

PLACEHOLDER_IMAGE = f"registry.invalid/tensorant-trainer@sha256:{'0' * 64}"
"""Stands in until a trainer image is chosen: it can be pulled from nowhere (`.invalid`, RFC 2606)."""


class ContextError(ValueError):
    """A context value that no deployment can work with; the message says how to mend it."""


@dataclass(frozen=True)
class TokenIssuer:
    """An OpenID Connect issuer that an organization brings, in place of the deployment's user pool."""

    url: str
    audiences: tuple[str, ...]


@dataclass(frozen=True)
class Deployment:
    """One deployment in one account and region.

    `ephemeral` deployments are thrown away with their data; the others keep it when the stack is deleted.
    """

    id: str = DEFAULT_ID
    trainer_image: str = PLACEHOLDER_IMAGE
    admin_group: str = DEFAULT_ADMIN_GROUP
    issuer: TokenIssuer | None = None
    ephemeral: bool = False

    @property
    def secret_prefix(self) -> str:
        """Under which the credentials of connections are stored."""
        return f"tensorant/{self.id}/connections"

    @classmethod
    def from_context(cls, context: Context) -> Deployment:
        """Read `deployment`, `trainerImage`, `adminGroup`, `oidcIssuer`, `oidcAudience` and `ephemeral`.

        Raises `ContextError`.
        """
        return cls(
            id=_matching(
                context,
                "deployment",
                DEFAULT_ID,
                r"[a-z][a-z0-9-]{0,29}",
                "lower case letters, digits, hyphens",
            ),
            trainer_image=_matching(
                context,
                "trainerImage",
                PLACEHOLDER_IMAGE,
                r"[^@\s]+@sha256:[0-9a-f]{64}",
                "REPOSITORY@sha256:DIGEST",
            ),
            admin_group=_matching(context, "adminGroup", DEFAULT_ADMIN_GROUP, r"\S{1,128}", "one word"),
            issuer=_issuer(context),
            ephemeral=_matching(context, "ephemeral", "false", r"(?i:true|false)", "true or false").lower()
            == "true",
        )


def _issuer(context: Context) -> TokenIssuer | None:
    url, listed = _text(context, "oidcIssuer", ""), _text(context, "oidcAudience", "")
    audiences = tuple(audience for each in listed.split(",") if (audience := each.strip()))
    if not url and not audiences:
        return None
    if not url.startswith("https://") or not audiences:
        raise ContextError(
            "context oidcIssuer (https://…) and oidcAudience (one or more, comma-separated) are given together"
        )
    return TokenIssuer(url, audiences)


def _matching(context: Context, key: str, default: str, pattern: str, form: str) -> str:
    value = _text(context, key, default)
    if not re.fullmatch(pattern, value):
        raise ContextError(f"context {key}={value!r} is not of the form: {form}")
    return value


def _text(context: Context, key: str, default: str) -> str:
    value = context(key)
    return default if value is None else str(value)
