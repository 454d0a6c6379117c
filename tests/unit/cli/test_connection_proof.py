"""How a new AWS connection proves who it is: keys, temporary keys, a role, the deployment's own account."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tensorant.domain.connections import AwsSettings, CredentialKind, ManagedBy
from tensorant.handlers.connection_requests import AwsConnection
from tests.support.command_line import NOON, ORG, ScriptedApi, Terminal, connection, squeezed
from tests.unit.cli.test_profiles import local_mode

if TYPE_CHECKING:
    from tensorant.handlers.connection_views import ConnectionView

KEYS = {
    "AWS_ACCESS_KEY_ID": "ASIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "AWS_SESSION_TOKEN": "session-token-of-this-test",
}
EXPIRES = "2026-03-01T20:00:00+00:00"
ROLE = "arn:aws:iam::123456789012:role/tensorant-training"
CREATE = f"POST {ORG}/connections"
SHOW = f"GET {ORG}/connections/conn-1"
OPTIONS = (
    *("connections", "create", "aws", "--region", "us-east-1", "--image-id", "ami-0123456789abcdef0"),
    *("--subnet-id", "subnet-0123456789abcdef0", "--security-group-id", "sg-0123456789abcdef0"),
)


def aws(credentials: str = "keys", **changes: Any) -> ConnectionView:
    """A connection to AWS; one with a role has its ARN and an external id."""
    by_role = credentials == "role"
    settings = AwsSettings(
        region="us-east-1",
        image_id="ami-0123456789abcdef0",
        subnet_ids=("subnet-0123456789abcdef0",),
        security_group_id="sg-0123456789abcdef0",
        credentials=CredentialKind(credentials),
        role_arn=ROLE if by_role else None,
        external_id="external-id-1" if by_role else None,
    )
    return connection(kind="aws", settings=settings, **changes)


def a_role(status: str) -> ConnectionView:
    return aws("role", status=status, checks=())


def test_temporary_keys_of_the_environment_bring_their_expiry(terminal: Terminal, api: ScriptedApi) -> None:
    terminal.environ |= {**KEYS, "AWS_CREDENTIAL_EXPIRATION": EXPIRES}
    api.answer(CREATE, aws(status="checking"), status=202)
    api.answer(SHOW, aws(credentials_expire_at=NOON + timedelta(hours=8)))

    result = terminal.run(*OPTIONS)

    assert result.exit_code == 0
    assert api.sent(CREATE)["credentials"]["expires_at"] == EXPIRES
    AwsConnection.model_validate(api.sent(CREATE))
    assert "Expires 2026-03-01 20:00:00 UTC (in 8 h)" in squeezed(result.stdout)


def test_an_option_says_the_expiry_too(terminal: Terminal, api: ScriptedApi) -> None:
    terminal.environ |= KEYS
    api.answer(CREATE, aws(status="checking"), status=202)

    terminal.run(*OPTIONS, "--no-wait", "--expires-at", EXPIRES)

    assert api.sent(CREATE)["credentials"]["expires_at"] == EXPIRES


def test_temporary_keys_without_an_expiry_are_not_sent(terminal: Terminal, api: ScriptedApi) -> None:
    terminal.environ |= KEYS

    result = terminal.run(*OPTIONS)

    assert result.exit_code == 1
    assert "Error: Not given: --expires-at." in result.stderr
    assert "AWS_CREDENTIAL_EXPIRATION" in result.stderr
    assert api.requests == []


def test_temporary_keys_that_are_typed_need_token_and_expiry(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(CREATE, aws(status="checking"), status=202)
    typed = "\n".join((*KEYS.values(), EXPIRES))

    result = terminal.run(*OPTIONS, "--no-wait", typed=f"{typed}\n")

    assert result.exit_code == 0
    assert api.sent(CREATE)["credentials"] == {
        "access_key_id": KEYS["AWS_ACCESS_KEY_ID"],
        "secret_access_key": KEYS["AWS_SECRET_ACCESS_KEY"],
        "session_token": KEYS["AWS_SESSION_TOKEN"],
        "expires_at": EXPIRES,
    }
    assert KEYS["AWS_SESSION_TOKEN"] not in result.output


def test_a_role_asks_for_no_keys_and_says_what_to_do_next(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(CREATE, a_role("checking"), status=202)

    result = terminal.run(*OPTIONS, "--role-arn", ROLE)

    assert result.exit_code == 0
    asked = AwsConnection.model_validate(api.sent(CREATE))
    assert api.sent(CREATE)["credentials"] == {"kind": "role", "role_arn": ROLE}
    assert asked.settings().credentials is CredentialKind.ROLE
    lines = squeezed(result.stdout)
    assert f"Credentials the role {ROLE}" in lines
    assert "External id external-id-1" in lines
    assert "tensorant connections connector conn-1 > connector.json" in result.stderr
    assert "tensorant connections check conn-1" in result.stderr
    assert api.calls() == [CREATE]


def test_the_deployment_s_own_account_is_the_platform_s(terminal: Terminal, api: ScriptedApi) -> None:
    local_mode(terminal.directory, organization="org-1")
    terminal.environ.clear()
    view = aws(credentials="same_account", managed_by=ManagedBy.PLATFORM)
    api.answer(CREATE, view, status=202)
    api.answer(SHOW, view)

    result = terminal.run(*OPTIONS, "--same-account")

    assert result.exit_code == 0
    sent = api.sent(CREATE)
    AwsConnection.model_validate(sent)
    assert (sent["managed_by"], sent["credentials"]) == ("platform", {"kind": "same_account"})
    assert [each.headers["Authorization"] for each in api.requests] == [
        "Bearer admin-token",
        "Bearer owner-token",
    ]
    assert "Managed by the platform" in squeezed(result.stdout)
    assert "Credentials the deployment's own" in squeezed(result.stdout)


def test_a_role_and_the_own_account_exclude_each_other(terminal: Terminal, api: ScriptedApi) -> None:
    result = terminal.run(*OPTIONS, "--role-arn", ROLE, "--same-account")

    assert result.exit_code == 1
    assert "--role-arn and --same-account exclude each other." in result.stderr
    assert api.requests == []
