"""Step Functions' answers: which are the same as success, and which are trouble."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from tensorant.adapters.step_functions import StepFunctions
from tensorant.adapters.workers import LambdaWorkers
from tensorant.domain.errors import ProviderFault
from tests.support.worlds import NOON, run

ARN = "arn:aws:states:us-east-1:123456789012:stateMachine:training-run"
START = {
    "stateMachineArn": ARN,
    "name": "run-1-launch-1",
    "input": json.dumps({"operation": "launch", "run_id": "run-1", "number": 1}),
}
LAUNCHED = run().launched("mia", at=NOON)


def stubbed(service: str) -> Stubber:
    client: Any = boto3.client(  # type: ignore[call-overload]
        service, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
    )
    return Stubber(client)


@pytest.fixture
def states() -> Iterator[Stubber]:
    with stubbed("stepfunctions") as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def workflow(states: Stubber) -> StepFunctions:
    return StepFunctions(states.client, ARN)


def test_an_execution_is_started_by_its_recorded_name(states: Stubber) -> None:
    states.add_response("start_execution", {"executionArn": "a", "startDate": NOON}, START)

    workflow(states).start(LAUNCHED)


def test_an_execution_that_exists_already_is_the_same(states: Stubber) -> None:
    states.add_client_error("start_execution", "ExecutionAlreadyExists")

    workflow(states).start(LAUNCHED)


@pytest.mark.parametrize(
    "code", ["StateMachineDoesNotExist", "ThrottlingException", "InternalServerException"]
)
def test_what_could_not_be_started_is_trouble(states: Stubber, code: str) -> None:
    states.add_client_error("start_execution", code, http_status_code=400)

    with pytest.raises(ProviderFault):
        workflow(states).start(LAUNCHED)


def test_a_wait_is_ended_and_extended_by_its_token(states: Stubber) -> None:
    states.add_response("send_task_success", {}, {"taskToken": "token-1", "output": "{}"})
    states.add_response("send_task_heartbeat", {}, {"taskToken": "token-1"})

    workflow(states).wake("token-1")
    workflow(states).beat("token-1")


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"])
def test_a_token_that_nobody_waits_for_is_no_error(states: Stubber, code: str) -> None:
    states.add_client_error("send_task_success", code)
    states.add_client_error("send_task_heartbeat", code)

    workflow(states).wake("token-1")
    workflow(states).beat("token-1")


def test_other_answers_to_a_token_are_trouble(states: Stubber) -> None:
    states.add_client_error("send_task_success", "AccessDeniedException")
    states.add_client_error("send_task_heartbeat", "ThrottlingException")

    with pytest.raises(ProviderFault):
        workflow(states).wake("token-1")
    with pytest.raises(ProviderFault):
        workflow(states).beat("token-1")


# -- workers -----------------------------------------------------------------------------------------------


def test_workers_are_started_without_waiting() -> None:
    with stubbed("lambda") as stubber:
        for function, payload in (
            ("check", {"organization_id": "org-1", "connection_id": "conn-1"}),
            ("validate", {"organization_id": "org-1", "version_id": "data-1"}),
        ):
            expected = {
                "FunctionName": function,
                "InvocationType": "Event",
                "Payload": json.dumps(payload).encode(),
            }
            stubber.add_response("invoke", {"StatusCode": 202}, expected)
        workers = LambdaWorkers(stubber.client, "check", "validate")

        workers.check_connection("org-1", "conn-1")
        workers.validate_dataset("org-1", "data-1")

        stubber.assert_no_pending_responses()


def test_a_worker_that_can_not_be_started_is_trouble() -> None:
    with stubbed("lambda") as stubber:
        stubber.add_client_error("invoke", "ResourceNotFoundException")

        with pytest.raises(ProviderFault):
            LambdaWorkers(stubber.client, "check", "validate").check_connection("org-1", "conn-1")
