"""Signing in to a user pool: the password is typed, hidden and never stored; tokens are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.command_line import API, ORG, ScriptedApi, Terminal, listed, run

POOL = "POST /"
LOGIN = ("login", "--url", API, "--username", "ann@example.com")
POOL_OPTIONS = ("--client-id", "client-1", "--region", "eu-west-1")
PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def nothing_configured(terminal: Terminal) -> None:
    terminal.environ.clear()


def tokens(access: str = "access-1", **more: str) -> dict[str, Any]:
    return {"AuthenticationResult": {"AccessToken": access, "ExpiresIn": 3600, **more}}


def stored(terminal: Terminal) -> dict[str, Any]:
    path = terminal.directory / "home" / ".config" / "tensorant" / "config.json"
    profiles: dict[str, Any] = json.loads(path.read_bytes())["profiles"]
    return profiles


def test_a_password_becomes_a_stored_token(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(POOL, tokens(RefreshToken="refresh-1"))

    result = terminal.run(*LOGIN, *POOL_OPTIONS, typed=f"{PASSWORD}\n")

    assert result.exit_code == 0
    [asked] = api.requests
    assert str(asked.url) == "https://cognito-idp.eu-west-1.amazonaws.com/"
    assert asked.headers["X-Amz-Target"] == "AWSCognitoIdentityProviderService.InitiateAuth"
    assert asked.headers["Content-Type"] == "application/x-amz-json-1.1"
    assert json.loads(asked.content) == {
        "ClientId": "client-1",
        "AuthFlow": "USER_PASSWORD_AUTH",
        "AuthParameters": {"USERNAME": "ann@example.com", "PASSWORD": PASSWORD},
    }
    assert stored(terminal)["default"]["token"] == "access-1"
    for secret in (PASSWORD, "access-1", "refresh-1"):
        assert secret not in result.output
    assert PASSWORD not in json.dumps(stored(terminal))


def test_the_next_sign_in_needs_no_options(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(
        POOL, tokens("access-1", RefreshToken="refresh-1"), tokens("access-2", RefreshToken="refresh-2")
    )
    terminal.run(*LOGIN, *POOL_OPTIONS, typed=f"{PASSWORD}\n")

    result = terminal.run("login", "--username", "ann@example.com", typed=f"{PASSWORD}\n")

    assert result.exit_code == 0
    assert stored(terminal)["default"]["token"] == "access-2"


def test_a_first_password_is_replaced(terminal: Terminal, api: ScriptedApi) -> None:
    challenge = {"ChallengeName": "NEW_PASSWORD_REQUIRED", "Session": "session-1", "ChallengeParameters": {}}
    api.answer(POOL, challenge, tokens(RefreshToken="refresh-1"))

    result = terminal.run(*LOGIN, *POOL_OPTIONS, typed=f"first\n{PASSWORD}\n")

    assert result.exit_code == 0
    assert json.loads(api.requests[1].content)["ChallengeResponses"] == {
        "USERNAME": "ann@example.com",
        "NEW_PASSWORD": PASSWORD,
    }
    assert api.requests[1].headers["X-Amz-Target"].endswith("RespondToAuthChallenge")


def test_a_wrong_password_is_told_and_stores_nothing(terminal: Terminal, api: ScriptedApi) -> None:
    refused = {"__type": "NotAuthorizedException", "message": "Incorrect username or password."}
    api.answer(POOL, refused, status=400)

    result = terminal.run(*LOGIN, *POOL_OPTIONS, typed="wrong\n")

    assert result.exit_code == 1
    assert "Incorrect username or password. (NotAuthorizedException)" in result.stderr
    assert not (terminal.directory / "home").exists()


def test_an_unknown_challenge_names_the_way_around_it(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(POOL, {"ChallengeName": "SOFTWARE_TOKEN_MFA", "Session": "session-1"})

    result = terminal.run(*LOGIN, *POOL_OPTIONS, typed=f"{PASSWORD}\n")

    assert result.exit_code == 1
    assert "SOFTWARE_TOKEN_MFA" in result.stderr
    assert "TENSORANT_TOKEN" in result.stderr


def test_an_expired_token_is_renewed_once_and_stored(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(POOL, tokens(RefreshToken="refresh-1"), tokens("access-2"))
    terminal.run(*LOGIN, *POOL_OPTIONS, "--organization-id", "org-1", typed=f"{PASSWORD}\n")
    api.answer(f"GET {ORG}/runs", {"message": "Unauthorized"}, status=401)
    api.answer(f"GET {ORG}/runs", listed(run()))

    result = terminal.run("runs", "list")

    assert result.exit_code == 0
    assert api.requests[-2].headers.get("Authorization") is None
    assert api.requests[-1].headers["Authorization"] == "Bearer access-2"
    assert stored(terminal)["default"]["token"] == "access-2"
    assert stored(terminal)["default"]["sign_in"]["refresh_token"] == "refresh-1"
    assert stored(terminal)["default"]["organization"] == "org-1"


def test_when_renewing_is_over_signing_in_is_the_mend(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(POOL, tokens(RefreshToken="refresh-1"))
    terminal.run(*LOGIN, *POOL_OPTIONS, "--organization-id", "org-1", typed=f"{PASSWORD}\n")
    expired = {"__type": "NotAuthorizedException", "message": "Refresh Token has expired"}
    api.forget(POOL)
    api.answer(POOL, expired, status=400)
    api.answer(f"GET {ORG}/runs", {"message": "Unauthorized"}, status=401)

    result = terminal.run("runs", "list")

    assert result.exit_code == 1
    assert "Error: The token has expired.\nMend: Sign in again: tensorant login." in result.stderr


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (("login", "--username", "ann@example.com"), "tensorant login --url URL"),
        (LOGIN, "Give --client-id and --region"),
    ],
)
def test_what_a_first_sign_in_needs_is_told(
    terminal: Terminal, arguments: tuple[str, ...], missing: str
) -> None:
    result = terminal.run(*arguments, typed=f"{PASSWORD}\n")

    assert result.exit_code == 1
    assert missing in result.stderr
