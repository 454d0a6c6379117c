"""Access keys as they are sent. No secret is repeated."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, BeforeValidator, Field, SecretStr, ValidationInfo, field_validator

from tensorant.domain import aws_names
from tensorant.domain.connections import CredentialKind
from tensorant.handlers.request_rules import fault, rule
from tensorant.handlers.requests import Request


def only_keys(kind: object) -> object:
    if kind == CredentialKind.KEYS:
        return kind
    raise fault(
        "keys_only",
        "Only an access key is taken here.",
        "Send access_key_id and secret_access_key, and leave kind out. The role of a connection is changed with "
        "its settings.",
    )


class KeyCredentials(Request):
    """An access key; a temporary one comes with its session token and the moment when it expires."""

    kind: Annotated[Literal["keys"], BeforeValidator(only_keys)] = "keys"
    access_key_id: Annotated[str, rule(aws_names.access_key_id)]
    secret_access_key: Annotated[SecretStr, Field(min_length=16, max_length=256)]
    session_token: Annotated[
        Annotated[SecretStr, Field(min_length=16, max_length=4096)] | None, Field(validate_default=True)
    ] = None
    expires_at: Annotated[AwareDatetime | None, Field(validate_default=True)] = None

    @field_validator("session_token")
    @classmethod
    def _complete(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is None and aws_names.is_temporary(info.data.get("access_key_id", "")):
            raise fault(
                "session_token_missing",
                "A temporary access key (ASIA…) is nothing without its session token.",
                "Add the session token that came with the key, and when it expires; or use a user's key (AKIA…).",
            )
        return value

    @field_validator("expires_at")
    @classmethod
    def _known_and_ahead(cls, value: datetime | None, info: ValidationInfo) -> datetime | None:
        has_token = info.data.get("session_token") is not None
        if value is None and has_token:
            raise fault(
                "expires_at_missing",
                "With a session token the credentials end, and it is not said when.",
                "Add expires_at, the Expiration that came with the token, for instance 2026-03-01T20:00:00Z.",
            )
        if value is not None and "session_token" in info.data and not has_token:
            raise fault(
                "expires_at_without_token",
                "Only credentials with a session token expire.",
                "Add the session token, or leave expires_at out.",
            )
        now = (info.context or {}).get("now")
        if value is not None and now is not None and value <= now:
            raise fault(
                "credentials_expired",
                f"These credentials have expired, at {value.isoformat(timespec='minutes')}.",
                "Make new temporary credentials; they must outlast every run and every kept disk.",
            )
        return value

    def secret(self) -> dict[str, str]:
        secret = {
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key.get_secret_value(),
        }
        if self.session_token is not None:
            secret["session_token"] = self.session_token.get_secret_value()
        return secret
