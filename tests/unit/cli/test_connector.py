"""Policies and the connector at the terminal: the document alone on stdout, so that it can go into a file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tensorant.domain.connections import AwsSettings
from tensorant.handlers.routes.connector import AwsPolicyRequest, ConnectorView, PolicyView
from tensorant_cli import models
from tests.support.command_line import ORG, ScriptedApi, Terminal, connection, listed

POLICY = f"GET {ORG}/connections/conn-1/policy"
CONNECTOR = f"GET {ORG}/connections/conn-1/connector"
DRAFT = f"POST {ORG}/aws-policy"
DOCUMENT = {"Version": "2012-10-17", "Statement": [{"Sid": "DiscoverAndPrice"}]}
TEMPLATE = {"AWSTemplateFormatVersion": "2010-09-09", "Resources": {}}
NOTE = "The role inside the instance profile was taken to be another."
SETTINGS = (
    *("--region", "eu-west-1", "--image-id", "ami-0123456789abcdef0"),
    *("--subnet-id", "subnet-0123456789abcdef0", "--subnet-id", "subnet-0123456789abcdef1"),
    *("--security-group-id", "sg-0123456789abcdef0"),
)


def policy_answer(**changes: Any) -> PolicyView:
    fields = {"policy": DOCUMENT, "account_id": "111122223333", "region": "eu-west-1", "notes": ()}
    return PolicyView(**{**fields, **changes})


def connector_answer() -> ConnectorView:
    return ConnectorView(template=TEMPLATE, account_id="111122223333", region="eu-west-1", notes=())


def test_a_policy_can_go_into_a_file(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(POLICY, policy_answer(notes=(NOTE,)))

    result = terminal.run("connections", "policy", "conn-1")

    assert result.exit_code == 0
    assert json.loads(result.stdout) == DOCUMENT
    assert NOTE in result.stderr


def test_what_is_wanted_besides_is_asked_for(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(POLICY, policy_answer())
    role = "arn:aws:iam::111122223333:role/a/b"

    terminal.run(
        *("connections", "policy", "conn-1", "--quota", "--checks"),
        *("--profile-role-arn", role, "--account-id", "111122223333"),
    )

    [request] = api.requests
    assert dict(request.url.params) == {
        "quota": "true",
        "checks": "true",
        "profile_role_arn": role,
        "account_id": "111122223333",
    }


def test_the_only_connection_is_taken(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(f"GET {ORG}/connections", listed(connection(kind="aws")))
    api.answer(POLICY, policy_answer())

    result = terminal.run("connections", "policy")

    assert json.loads(result.stdout) == DOCUMENT
    assert "conn-1 (the only one)" in result.stderr


def test_the_connector_can_go_into_a_file_and_says_where_it_belongs(
    terminal: Terminal, api: ScriptedApi
) -> None:
    api.answer(CONNECTOR, connector_answer())

    result = terminal.run("connections", "connector", "conn-1")

    assert json.loads(result.stdout) == TEMPLATE
    assert "eu-west-1 of the account 111122223333" in result.stderr


def test_the_whole_answer_is_shown_as_json(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(CONNECTOR, connector_answer())

    result = terminal.run("connections", "connector", "conn-1", "--json")

    assert json.loads(result.stdout)["account_id"] == "111122223333"
    assert json.loads(result.stdout)["template"] == TEMPLATE


def test_a_policy_can_be_had_before_the_connection(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(DRAFT, policy_answer())

    result = terminal.run(
        "connections",
        "policy",
        *SETTINGS,
        "--account-id",
        "111122223333",
        "--key-name",
        "recovery",
        "--quota",
    )

    assert json.loads(result.stdout) == DOCUMENT
    asked = AwsPolicyRequest.model_validate(api.sent(DRAFT))
    assert (asked.account_id, asked.quota, asked.checks) == ("111122223333", True, False)
    assert asked.settings() == AwsSettings(
        region="eu-west-1",
        image_id="ami-0123456789abcdef0",
        subnet_ids=("subnet-0123456789abcdef0", "subnet-0123456789abcdef1"),
        security_group_id="sg-0123456789abcdef0",
        key_name="recovery",
    )


def test_settings_that_are_missing_are_named_at_once(terminal: Terminal, api: ScriptedApi) -> None:
    result = terminal.run("connections", "policy", "--region", "eu-west-1")

    assert result.exit_code == 1
    assert "Not given: --account-id, --image-id, --subnet-id, --security-group-id." in result.stderr
    assert api.requests == []


def test_a_connection_and_settings_exclude_each_other(terminal: Terminal, api: ScriptedApi) -> None:
    result = terminal.run("connections", "policy", "conn-1", "--region", "eu-west-1")

    assert result.exit_code == 1
    assert "its own settings" in result.stderr
    assert api.requests == []


@pytest.mark.parametrize(("model", "view"), [(models.Policy, PolicyView), (models.Connector, ConnectorView)])
def test_every_field_that_is_read_is_answered(model: Any, view: Any) -> None:
    assert set(model.model_fields) <= set(view.model_fields)
