"""The project's own template, synthesized and brought to life whole."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from tensorant_local import synthesis
from tensorant_local.cloud import CONTEXT, PROJECT, LocalCloud

CACHE = PROJECT / ".tensorant" / "synth"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    template = synthesis.template(PROJECT, cache=CACHE, context=CONTEXT)
    with LocalCloud(state=tmp_path_factory.mktemp("state"), template=template) as cloud:
        yield cloud


def test_every_resource_is_made_and_the_outputs_are_told(cloud: LocalCloud) -> None:
    assert cloud.outputs.keys() == {
        "ApiUrl",
        "UserPoolId",
        "UserPoolClientId",
        "StateMachineArn",
        "TableName",
    }
    assert cloud.outputs["ApiUrl"] == cloud.api_url


def test_every_function_has_an_identity_of_its_own(cloud: LocalCloud) -> None:
    functions = cloud.client("lambda").list_functions()["Functions"]

    assert len(functions) >= 13
    assert len({function["Role"] for function in functions}) == len(functions)


def test_the_state_machine_calls_functions_that_exist(cloud: LocalCloud) -> None:
    machine = cloud.client("stepfunctions").describe_state_machine(
        stateMachineArn=cloud.outputs["StateMachineArn"]
    )
    names = {function["FunctionName"] for function in cloud.client("lambda").list_functions()["Functions"]}

    called = {
        state["Parameters"]["FunctionName"].rpartition(":")[2]
        for state in json.loads(machine["definition"])["States"].values()
        if state["Type"] == "Task"
    }

    assert called
    assert called <= names


def test_the_launching_function_knows_where_machines_report(cloud: LocalCloud) -> None:
    functions = cloud.client("lambda").list_functions()["Functions"]
    settings = {function["Handler"]: function["Environment"]["Variables"] for function in functions}

    assert settings["tensorant.handlers.launch_machine.handler"]["AGENT_URL"] == cloud.api_url


def test_without_a_token_nobody_gets_in(cloud: LocalCloud) -> None:
    answer = httpx.get(f"{cloud.api_url}/v1/organizations", trust_env=False)

    assert (answer.status_code, answer.json()) == (401, {"message": "Unauthorized"})
