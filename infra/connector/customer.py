"""The customer's values, read from CDK context and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from infra.deployment import ContextError
from tensorant.connector.template import CustomerBus
from tensorant.domain.connections import AwsSettings

if TYPE_CHECKING:
    from infra.deployment import Context

BUS = r"arn:aws:events:[a-z0-9-]+:\d{12}:event-bus/[\w.-]+"
ACCOUNT = r"\d{12}"


@dataclass(frozen=True, kw_only=True)
class Customer:
    """One connection, the account that it is to, and the deployment's bus."""

    settings: AwsSettings
    account_id: str
    bus: CustomerBus
    quota: bool = False
    checks: bool = False
    profile_role_arn: str | None = None

    @classmethod
    def from_context(cls, context: Context) -> Customer:
        """Read `connection`, `account`, `customerBusArn`, `quota`, `checks` and `profileRole`. Raises `ContextError`."""
        connection = _connection(_required(context, "connection", "the file of a connection"))
        account = context("account") or connection.account_id
        if not re.fullmatch(ACCOUNT, str(account or "")):
            raise ContextError("context account=… is needed: twelve digits, the account to deploy in")
        bus = _required(context, "customerBusArn", "the ARN of the deployment's customers' bus")
        if not re.fullmatch(BUS, bus):
            raise ContextError(f"context customerBusArn={bus!r} is not the ARN of an event bus")
        role = context("profileRole")
        return cls(
            settings=connection.settings,
            account_id=str(account),
            bus=CustomerBus(bus),
            quota=_is_true(context, "quota"),
            checks=_is_true(context, "checks"),
            profile_role_arn=None if role is None else str(role),
        )


class _Shown(BaseModel):
    """A connection as the API shows it, as far as it matters here."""

    settings: AwsSettings
    account_id: str | None = None


def _connection(path: str) -> _Shown:
    try:
        return _Shown.model_validate_json(Path(path).read_bytes())
    except (OSError, ValidationError) as error:
        raise ContextError(f"context connection={path!r} is not a connection to AWS: {error}") from error


def _required(context: Context, key: str, what: str) -> str:
    value: Any = context(key)
    if value is None:
        raise ContextError(f"context {key}=… is needed: {what}")
    return str(value)


def _is_true(context: Context, key: str) -> bool:
    return str(context(key) or "false").lower() == "true"
