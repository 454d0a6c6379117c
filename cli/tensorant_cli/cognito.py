"""Signing in to a Cognito user pool with name and password, over its public HTTPS API.

Source: Amazon Cognito user pools API, InitiateAuth and RespondToAuthChallenge (neither needs AWS credentials).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from tensorant_cli.errors import CliError, Unreachable
from tensorant_cli.http import TIMEOUT, on_loopback, origin, require_safe

TARGET = "AWSCognitoIdentityProviderService"


class Refused(CliError):
    """The user pool said no."""


@dataclass(frozen=True)
class Tokens:
    """The access token is what the API takes; it lasts as long as the user pool says, an hour by default."""

    access_token: str = field(repr=False)
    refresh_token: str = field(default="", repr=False)


@dataclass(frozen=True)
class UserPoolClient:
    """One client of a user pool, without a client secret."""

    endpoint: str
    client_id: str
    transport: httpx.BaseTransport | None = None

    def sign_in(self, username: str, password: str, *, new_password: Callable[[], str]) -> Tokens:
        """Tokens for a person. `new_password` is asked when the pool wants the first one replaced."""
        answer = self._initiate("USER_PASSWORD_AUTH", {"USERNAME": username, "PASSWORD": password})
        challenge = answer.get("ChallengeName")
        if challenge == "NEW_PASSWORD_REQUIRED":
            answer = self._call(
                "RespondToAuthChallenge",
                {
                    "ClientId": self.client_id,
                    "ChallengeName": challenge,
                    "Session": answer["Session"],
                    "ChallengeResponses": {"USERNAME": username, "NEW_PASSWORD": new_password()},
                },
            )
        return _tokens(answer)

    def renew(self, refresh_token: str) -> str:
        """The next access token."""
        return _tokens(self._initiate("REFRESH_TOKEN_AUTH", {"REFRESH_TOKEN": refresh_token})).access_token

    def _initiate(self, flow: str, parameters: dict[str, str]) -> dict[str, Any]:
        return self._call(
            "InitiateAuth", {"ClientId": self.client_id, "AuthFlow": flow, "AuthParameters": parameters}
        )

    def _call(self, action: str, body: dict[str, Any]) -> dict[str, Any]:
        endpoint = require_safe(self.endpoint)
        headers = {"X-Amz-Target": f"{TARGET}.{action}", "Content-Type": "application/x-amz-json-1.1"}
        try:
            with httpx.Client(
                timeout=TIMEOUT, transport=self.transport, trust_env=not on_loopback(endpoint)
            ) as client:
                response = client.post(f"{endpoint}/", json=body, headers=headers)
        except httpx.TransportError as error:
            raise Unreachable(
                f"The user pool at {origin(endpoint)} does not answer ({type(error).__name__}).",
                mend="Check --region or --cognito-endpoint, and your network.",
            ) from error
        answer = _json(response)
        if not response.is_success:
            raise _refused(answer, response)
        return answer


def _tokens(answer: dict[str, Any]) -> Tokens:
    result = answer.get("AuthenticationResult")
    if not isinstance(result, dict):
        raise CliError(
            f"The user pool asks for {answer.get('ChallengeName', 'more')}, which this command can't answer.",
            mend="Sign in elsewhere and set TENSORANT_TOKEN to the access token.",
        )
    return Tokens(result["AccessToken"], result.get("RefreshToken", ""))


def _refused(answer: dict[str, Any], response: httpx.Response) -> Refused:
    kind = str(answer.get("__type", f"http_{response.status_code}")).rpartition("#")[2]
    message = answer.get("message") or answer.get("Message") or "no reason given"
    return Refused(
        f"The user pool refused: {message} ({kind}).",
        mend="Check name, password, client id and region; ask an administrator to reset the password.",
    )


def _json(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
