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

MOST_CUSTOMER_ACCOUNTS = 100
"""A rule's pattern takes 2,048 characters, and 15 go to each account; a bus's policy of 10 KB takes more.

Source: EventBridge quotas.
"""


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
    customer_accounts: tuple[str, ...] = ()
    """Accounts whose EC2 events are heard (docs/deploy.md)."""
    same_account_compute: bool = False
    """Whether the deployment may make machines in its own account, for connections that the platform manages."""
    private_storage: bool = False
    """Whether customers' storage endpoints may be at private addresses."""

    @property
    def secret_prefix(self) -> str:
        """Under which the credentials of connections are stored."""
        return f"tensorant/{self.id}/connections"

    @classmethod
    def from_context(cls, context: Context) -> Deployment:
        """Read `deployment`, `trainerImage`, `adminGroup`, `oidcIssuer`, `oidcAudience`, `ephemeral`,
        `customerAccounts`, `sameAccountCompute` and `allowPrivateStorage`.

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
            ephemeral=_switch(context, "ephemeral"),
            customer_accounts=_customer_accounts(context),
            same_account_compute=_switch(context, "sameAccountCompute"),
            private_storage=_switch(context, "allowPrivateStorage"),
        )


def _customer_accounts(context: Context) -> tuple[str, ...]:
    """In order, each once."""
    listed = _matching(
        context,
        "customerAccounts",
        "",
        r"\s*(\d{12}\s*(,\s*\d{12}\s*)*)?",
        "ACCOUNT_ID,ACCOUNT_ID,… of 12 digits each",
    )
    accounts = tuple(sorted({account for each in listed.split(",") if (account := each.strip())}))
    if len(accounts) > MOST_CUSTOMER_ACCOUNTS:
        raise ContextError(
            f"context customerAccounts names {len(accounts)} accounts, and one bus and its rules take "
            f"{MOST_CUSTOMER_ACCOUNTS}: leave some out; the sweep looks at their machines all the same"
        )
    return accounts


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


def _switch(context: Context, key: str) -> bool:
    return _matching(context, key, "false", r"(?i:true|false)", "true or false").lower() == "true"


def _matching(context: Context, key: str, default: str, pattern: str, form: str) -> str:
    value = _text(context, key, default)
    if not re.fullmatch(pattern, value):
        raise ContextError(f"context {key}={value!r} is not of the form: {form}")
    return value


def _text(context: Context, key: str, default: str) -> str:
    value = context(key)
    return default if value is None else str(value)
