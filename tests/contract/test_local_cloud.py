"""The project's own template, synthesized and brought to life whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tensorant.adapters.dynamodb.store import DynamoStore
from tensorant.adapters.secrets_manager import SecretsManager
from tensorant.domain.connections import CheckVerdict
from tensorant.domain.storages import RunPodStorageSettings
from tensorant.domain.timeline import Fact
from tensorant_local import synthesis
from tensorant_local.cloud import CONTEXT, PROJECT, LocalCloud
from tests.contract.conformance.patience import eventually
from tests.support import worlds

CACHE = PROJECT / ".tensorant" / "synth"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    template = synthesis.template(PROJECT, cache=CACHE, context=CONTEXT)
    with LocalCloud(state=tmp_path_factory.mktemp("state"), template=template) as cloud:
        yield cloud


def test_every_resource_is_made_and_the_outputs_are_told(cloud: LocalCloud) -> None:
    assert cloud.outputs.keys() == {
        "ApiUrl",
        "CustomerBusArn",
        "EventBusName",
        "UserPoolId",
        "UserPoolClientId",
        "StateMachineArn",
        "TableName",
    }
    assert cloud.outputs["ApiUrl"] == cloud.api_url


def test_every_function_has_an_identity_of_its_own(cloud: LocalCloud) -> None:
    functions = cloud.client("lambda").list_functions()["Functions"]

    assert len(functions) == 16
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


def test_a_sweep_over_an_empty_table_finds_nothing(cloud: LocalCloud) -> None:
    answer = cloud.client("lambda").invoke(FunctionName=named(cloud, "sweep"))

    report = json.load(answer["Payload"])
    assert "FunctionError" not in answer, report
    datasets = report.pop("datasets")
    assert {name: found for name, found in (report | datasets).items() if found} == {}


def test_the_clock_calls_the_sweep(cloud: LocalCloud) -> None:
    (rule,) = (rule for rule in cloud.client("events").list_rules()["Rules"] if "ScheduleExpression" in rule)
    (target,) = cloud.client("events").list_targets_by_rule(Rule=rule["Name"])["Targets"]

    assert rule["ScheduleExpression"] == "rate(5 minutes)"
    assert target["Arn"].rpartition(":")[2] == named(cloud, "sweep")


def test_a_new_fact_comes_out_at_the_deployments_bus(cloud: LocalCloud) -> None:
    queue, url = a_queue(cloud)
    events, bus = cloud.client("events"), cloud.outputs["EventBusName"]
    events.put_rule(Name="news", EventBusName=bus, EventPattern='{"source": ["tensorant"]}')
    events.put_targets(Rule="news", EventBusName=bus, Targets=[{"Id": "1", "Arn": queue}])
    at = datetime(2026, 7, 20, 12, 30, 5, tzinfo=UTC)
    fact = Fact(run_id="run-1", id="run-2-run_launched", at=at, kind="run_launched", source="ada")

    DynamoStore(cloud.client("dynamodb"), cloud.outputs["TableName"]).commit(facts=[fact])

    [event] = received(cloud, url)
    assert (event["source"], event["detail-type"]) == ("tensorant", "Tensorant Run Fact")
    assert event["detail"] == {
        "version": 1,
        "id": "run-1/run-2-run_launched",
        "run_id": "run-1",
        "attempt": None,
        "kind": "run_launched",
        "source": "ada",
        "at": "2026-07-20T12:30:05+00:00",
        "message": "",
    }


def test_an_execution_that_failed_reaches_its_function(cloud: LocalCloud) -> None:
    store = DynamoStore(cloud.client("dynamodb"), cloud.outputs["TableName"])
    run = worlds.run(launched_at=worlds.NOON)
    store.commit(run)

    cloud.client("stepfunctions").start_execution(
        stateMachineArn=cloud.outputs["StateMachineArn"],
        input=json.dumps({"operation": "misspelt", "run_id": run.id, "number": 1}),
    )

    failure = eventually(lambda: store.run(run.id), lambda seen: seen.outcome is not None).failure
    assert failure is not None
    assert failure.code == "workflow_interrupted"


def test_a_network_volume_is_checked_through_its_own_endpoint(cloud: LocalCloud) -> None:
    store = DynamoStore(cloud.client("dynamodb"), cloud.outputs["TableName"])
    place = RunPodStorageSettings(datacenter=cloud.volume.datacenter, volume_id=cloud.volume.volume_id)
    connection = worlds.s3_connection(id="conn-runpod_storage-1", settings=place)
    store.commit(connection)
    function = named(cloud, "connection_check")
    told = cloud.client("lambda").get_function_configuration(FunctionName=function)["Environment"]
    secrets = SecretsManager(cloud.client("secretsmanager"), told["Variables"]["SECRET_PREFIX"])
    secrets.write(connection.id, cloud.volume.secret)

    event = {"organization_id": worlds.ORG, "connection_id": connection.id}
    cloud.client("lambda").invoke(FunctionName=function, Payload=json.dumps(event))

    checked = store.connection(worlds.ORG, connection.id)
    assert {item.name for item in checked.checks if item.verdict is CheckVerdict.WARNING} == {
        "presigned_urls",
        "conditional_writes",
    }
    assert checked.abilities is not None
    assert (checked.abilities.presigned, checked.abilities.multipart) == (False, True)


def named(cloud: LocalCloud, module: str) -> str:
    """The name of the function of a module of handlers."""
    functions = cloud.client("lambda").list_functions()["Functions"]
    return next(
        str(function["FunctionName"])
        for function in functions
        if function["Handler"] == f"tensorant.handlers.{module}.handler"
    )


def a_queue(cloud: LocalCloud) -> tuple[str, str]:
    """The ARN and the URL of a new queue."""
    queues = cloud.client("sqs")
    url = queues.create_queue(QueueName="news")["QueueUrl"]
    attributes = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    return str(attributes["QueueArn"]), str(url)


def received(cloud: LocalCloud, url: str) -> list[dict[str, Any]]:
    """The first events that come to a queue."""
    queues = cloud.client("sqs")
    messages = eventually(lambda: queues.receive_message(QueueUrl=url).get("Messages", []), bool)
    return [json.loads(message["Body"]) for message in messages]
