"""Connections changed and removed: what is not given stays, and nothing goes without a yes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tensorant.handlers.connection_requests import ChangeConnection
from tests.support.command_line import ORG, ScriptedApi, Terminal, connection, problem, squeezed
from tests.unit.cli.test_connection_proof import ROLE, a_role, aws
from tests.unit.cli.test_profiles import local_mode

if TYPE_CHECKING:
    from tensorant.handlers.connection_views import ConnectionView

SHOW = f"GET {ORG}/connections/conn-1"
EDIT = f"PATCH {ORG}/connections/conn-1"
REMOVE = f"DELETE {ORG}/connections/conn-1"
ROTATE = f"PUT {ORG}/connections/conn-1/credentials"
IN_USE = problem(
    code="connection_in_use",
    field=None,
    message="The run run-1 is under way on it.",
    mend="Wait for its end, or cancel it.",
)


def of_the_platform() -> ConnectionView:
    return aws(credentials="same_account", managed_by="platform")


def test_only_what_is_given_is_changed_and_checked_again(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, aws(), aws(status="checking"), aws())
    api.answer(EDIT, aws(status="checking"), status=202)

    result = terminal.run(
        *("connections", "edit", "conn-1", "--image-id", "ami-0123456789abcdef1"),
        *("--subnet-id", "subnet-0123456789abcdef2", "--subnet-id", "subnet-0123456789abcdef1"),
    )

    assert result.exit_code == 0
    assert api.sent(EDIT) == {
        "image_id": "ami-0123456789abcdef1",
        "subnet_ids": ["subnet-0123456789abcdef2", "subnet-0123456789abcdef1"],
    }
    assert "Status connected" in squeezed(result.stdout)


def test_every_option_of_a_change_reaches_its_field(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, aws())
    api.answer(EDIT, aws(), status=202)

    terminal.run(
        *("connections", "edit", "conn-1", "--name", "GPUs", "--region", "eu-west-1"),
        *("--image-id", "ami-0123456789abcdef1", "--subnet-id", "subnet-0123456789abcdef1"),
        *("--security-group-id", "sg-0123456789abcdef1", "--key-name", "mine", "--role-arn", ROLE),
        *("--instance-profile-arn", "arn:aws:iam::123456789012:instance-profile/recovery"),
    )

    sent = ChangeConnection.model_validate(api.sent(EDIT))
    assert sent.model_fields_set == set(ChangeConnection.model_fields)


def test_what_recovery_needs_can_be_taken_away(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, aws())
    api.answer(EDIT, aws(), status=202)

    terminal.run("connections", "edit", "conn-1", "--without-key-pair", "--without-instance-profile")

    sent = api.sent(EDIT)
    assert sent == {"key_name": None, "instance_profile_arn": None}
    ChangeConnection.model_validate(sent)


def test_a_change_of_nothing_is_none(terminal: Terminal, api: ScriptedApi) -> None:
    result = terminal.run("connections", "edit", "conn-1")

    assert result.exit_code == 1
    assert "Nothing to change was given." in result.stderr
    assert api.requests == []


def test_every_wrong_field_of_a_change_is_told(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, aws())
    first = problem(field="image_id", message="ami-1 is not an AMI's id.", mend="It is ami- and 17 digits.")
    second = problem(field="region", message="cn-north-1 is in AWS China.", mend="Use a commercial region.")
    api.answer(EDIT, {**first, "also": [second["error"]]}, status=422)

    result = terminal.run("connections", "edit", "conn-1", "--image-id", "ami-1", "--region", "cn-north-1")

    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "Error (image_id): ami-1 is not an AMI's id.",
        "Mend: It is ami- and 17 digits.",
        "Error (region): cn-north-1 is in AWS China.",
        "Mend: Use a commercial region.",
        "Request id: request-7",
    ]


def test_a_removal_asks_first(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, connection(name="Training"))
    api.answer(REMOVE, connection(name="Training"))

    refused = terminal.run("connections", "remove", "conn-1", typed="n\n")
    agreed = terminal.run("connections", "remove", "conn-1", typed="y\n")

    assert refused.exit_code == 1
    assert "Remove the connection Training (conn-1)?" in refused.stderr
    assert "Error: Not removed." in refused.stderr
    assert agreed.exit_code == 0
    assert "Removed conn-1; its credentials are deleted" in agreed.stdout
    assert api.calls().count(REMOVE) == 1


def test_where_nobody_can_be_asked_nothing_is_removed(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, connection())

    result = terminal.run("connections", "remove", "conn-1", typed="")

    assert result.exit_code == 1
    assert "give --yes where nobody can be asked" in result.stderr
    assert api.calls() == [SHOW]


def test_a_connection_in_use_is_not_removed(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, connection())
    api.answer(REMOVE, IN_USE, status=409)

    result = terminal.run("connections", "remove", "conn-1", "--yes")

    assert result.exit_code == 1
    assert "Error: The run run-1 is under way on it.\nMend: Wait for its end, or cancel it." in result.stderr


def test_a_role_has_no_keys_to_rotate(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, a_role("connected"))

    result = terminal.run("connections", "rotate", "conn-1")

    assert result.exit_code == 1
    assert "has no keys to replace" in result.stderr
    assert "--role-arn" in result.stderr
    assert api.calls() == [SHOW]


def test_rotated_temporary_keys_bring_their_expiry(terminal: Terminal, api: ScriptedApi) -> None:
    terminal.environ |= {
        "AWS_ACCESS_KEY_ID": "ASIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AWS_SESSION_TOKEN": "session-token-of-this-test",
    }
    api.answer(SHOW, aws())
    api.answer(ROTATE, aws(), status=202)

    result = terminal.run("connections", "rotate", "conn-1", "--expires-at", "2026-03-02T12:00:00Z")

    assert result.exit_code == 0
    assert api.sent(ROTATE)["expires_at"] == "2026-03-02T12:00:00Z"


@pytest.mark.parametrize(
    ("arguments", "request_"),
    [
        (("edit", "conn-1", "--name", "GPUs"), EDIT),
        (("remove", "conn-1", "--yes"), REMOVE),
        (("check", "conn-1"), f"POST {ORG}/connections/conn-1/check"),
    ],
)
def test_the_platform_s_connection_is_changed_by_its_admin(
    terminal: Terminal, api: ScriptedApi, arguments: tuple[str, ...], request_: str
) -> None:
    local_mode(terminal.directory, organization="org-1")
    terminal.environ.clear()
    api.answer(SHOW, of_the_platform())
    api.answer(request_, of_the_platform())

    result = terminal.run("connections", *arguments)

    assert result.exit_code == 0
    [change] = [each for each in api.requests if f"{each.method} {each.url.path}" == request_]
    assert change.headers["Authorization"] == "Bearer admin-token"


def test_a_role_can_be_changed(terminal: Terminal, api: ScriptedApi) -> None:
    other = ROLE.replace("training", "gpus")
    api.answer(SHOW, a_role("connected"))
    api.answer(EDIT, a_role("checking"), status=202)

    terminal.run("connections", "edit", "conn-1", "--role-arn", other, "--no-wait")

    assert api.sent(EDIT) == {"role_arn": other}
