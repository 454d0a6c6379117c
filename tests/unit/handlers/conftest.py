"""The real handlers on AWS in memory: one deployment a test module, one table a test."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import boto3
import pytest
from moto import mock_aws

from tensorant import bootstrap
from tests.support.calls import Caller, fixture_of
from tests.support.tables import create_table
from tests.support.worlds import World

REGION = "us-east-1"
TABLE = "tensorant"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}


@pytest.fixture
def people() -> Callable[[ModuleType], Caller]:
    """A caller of one of the user API's functions, signed in as the member mia."""
    return lambda module: Caller(module.handler, fixture_of("http_user"))


@pytest.fixture
def machines() -> Callable[[ModuleType], Caller]:
    """A caller of the agent API."""
    return lambda module: Caller(module.handler, fixture_of("http_machine"))


# -- the deployment ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def deployment() -> Iterator[pytest.MonkeyPatch]:
    """Everything but the table, and the environment that names it."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ACCESS_KEY_ID", "testing")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        environment.setenv("AWS_DEFAULT_REGION", REGION)
        with mock_aws(config={"lambda": {"use_docker": False}}):
            _forget()
            for name, value in _deployed().items():
                environment.setenv(name, value)
            yield environment
        _forget()


@pytest.fixture
def cloud(deployment: pytest.MonkeyPatch) -> Iterator[World]:
    """A fresh table with the organization in it; `store` is the real one."""
    _forget(keep=("client",))
    client = bootstrap.client("dynamodb")
    create_table(client, TABLE)
    deployment.setenv("TABLE_NAME", TABLE)
    real_store: Any = bootstrap.store()
    yield World(store=real_store).settle()
    client.delete_table(TableName=TABLE)  # moto copies every table in every transaction


def _forget(keep: tuple[str, ...] = ()) -> None:
    """What the composition root has built belongs to one environment."""
    for name, built in vars(bootstrap).items():
        if name not in keep and hasattr(built, "cache_clear"):
            built.cache_clear()


def _deployed() -> dict[str, str]:
    def client(service: str) -> Any:
        return boto3.client(service)  # type: ignore[call-overload]

    client("s3").create_bucket(Bucket="staging")
    client("logs").create_log_group(logGroupName="run-logs")
    role = client("iam").create_role(RoleName="role", AssumeRolePolicyDocument=json.dumps(TRUST))["Role"][
        "Arn"
    ]
    key = client("secretsmanager").create_secret(Name="deployment-key", SecretString="k" * 64)["ARN"]
    machine = client("stepfunctions").create_state_machine(
        name="training-run",
        definition=json.dumps({"StartAt": "End", "States": {"End": {"Type": "Succeed"}}}),
        roleArn=role,
    )["stateMachineArn"]
    return {
        "DEPLOYMENT_ID": "dep-1",
        "ADMIN_GROUP": "platform-admins",
        "STATE_MACHINE_ARN": machine,
        "STAGING_BUCKET": "staging",
        "RUN_LOG_GROUP": "run-logs",
        "SECRET_PREFIX": "tensorant/dep-1/connections",
        "DEPLOYMENT_KEY_ARN": key,
        "CONNECTION_CHECK_ARN": _function(client("lambda"), "connection-check", role),
        "DATASET_WORKER_ARN": _function(client("lambda"), "dataset-worker", role),
        "AGENT_URL": "https://api.example",
        "CUSTOMER_BUS_ARN": "arn:aws:events:us-east-1:999988887777:event-bus/dep-1-customers",
        "TRAINER_IMAGE": "registry.example/trainer@sha256:abc",
    }


def _function(client: Any, name: str, role: str) -> str:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("index.py", "def handler(event, context): ...\n")
    answer = client.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Role=role,
        Handler="index.handler",
        Code={"ZipFile": archive.getvalue()},
    )
    return str(answer["FunctionArn"])
