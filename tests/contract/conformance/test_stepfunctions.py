"""Step Functions as AWS documents it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from tests.contract.conformance.patience import eventually, pause

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorant_local.aws.server import EmbeddedAws

ENDED = {"SUCCEEDED", "FAILED", "ABORTED", "TIMED_OUT"}


class Bench:
    """Starts small state machines and looks at their executions."""

    def __init__(self, aws: EmbeddedAws, role_arn: str, echo: str) -> None:
        self.sfn = aws.client("stepfunctions")
        self._role_arn = role_arn
        self.echo = echo

    def machine(self, states: dict[str, Any], **more: Any) -> str:
        definition = json.dumps({"StartAt": next(iter(states)), "States": states, **more})
        answer = self.sfn.create_state_machine(
            name=f"machine-{uuid4().hex[:8]}", definition=definition, roleArn=self._role_arn
        )
        return str(answer["stateMachineArn"])

    def start(self, states: dict[str, Any], given: object = None) -> str:
        answer = self.sfn.start_execution(stateMachineArn=self.machine(states), input=json.dumps(given or {}))
        return str(answer["executionArn"])

    def ended(self, execution: str) -> dict[str, Any]:
        described: dict[str, Any] = eventually(
            lambda: self.sfn.describe_execution(executionArn=execution), lambda seen: seen["status"] in ENDED
        )
        return described

    def output(self, execution: str) -> Any:
        described = self.ended(execution)
        assert described["status"] == "SUCCEEDED", described
        return json.loads(described["output"])

    def history(self, execution: str) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = self.sfn.get_execution_history(executionArn=execution)["events"]
        return events

    def tokens(self, execution: str, count: int = 1) -> list[str]:
        """The task tokens of the first attempts, as the function was given them."""

        def scheduled() -> list[str]:
            parameters = [
                json.loads(event["taskScheduledEventDetails"]["parameters"])
                for event in self.history(execution)
                if event["type"] == "TaskScheduled"
            ]
            return [p["Payload"]["token"] for p in parameters if "token" in p["Payload"]]

        return eventually(scheduled, lambda seen: len(seen) >= count)

    def submitted(self, execution: str, count: int = 1) -> None:
        eventually(
            lambda: [event["type"] for event in self.history(execution)].count("TaskSubmitted"),
            lambda seen: seen >= count,
        )

    def task(self, **more: object) -> dict[str, Any]:
        """A wait for a callback, that ends the execution."""
        return {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
            "Parameters": {"FunctionName": self.echo, "Payload": {"token.$": "$$.Task.Token"}},
            "End": True,
        } | more


@pytest.fixture(scope="module")
def bench(aws: EmbeddedAws, role_arn: str, deploy: Callable[[Any], str]) -> Bench:
    def echo(event: Any) -> Any:
        return event

    return Bench(aws, role_arn, deploy(echo))


def caught(*errors: str) -> dict[str, Any]:
    return {"Catch": [{"ErrorEquals": list(errors), "ResultPath": "$.failure", "Next": "Caught"}]}


CAUGHT = {"Caught": {"Type": "Pass", "End": True}}


# -- callbacks ---------------------------------------------------------------------------------------------


def test_success_ends_the_wait_with_its_output(bench: Bench) -> None:
    execution = bench.start({"Wait": bench.task(HeartbeatSeconds=30, TimeoutSeconds=60)})
    [token] = bench.tokens(execution)

    bench.sfn.send_task_success(taskToken=token, output='{"loss": 0.5}')

    assert bench.output(execution) == {"loss": 0.5}


def test_an_outcome_before_the_function_returns_counts(
    bench: Bench, aws: EmbeddedAws, deploy: Callable[[Any], str]
) -> None:
    sfn = aws.client("stepfunctions")

    def signals_at_once(event: Any) -> None:
        sfn.send_task_heartbeat(taskToken=event["token"])
        sfn.send_task_success(taskToken=event["token"], output='"early"')

    task = bench.task(HeartbeatSeconds=90, TimeoutSeconds=100)
    task["Parameters"]["FunctionName"] = deploy(signals_at_once)
    execution = bench.start({"Wait": task})

    assert bench.output(execution) == "early"


def test_failure_gives_error_and_cause(bench: Bench) -> None:
    execution = bench.start({"Wait": bench.task(**caught("BadHost")), **CAUGHT})
    [token] = bench.tokens(execution)

    bench.sfn.send_task_failure(taskToken=token, error="BadHost", cause="no driver")

    assert bench.output(execution)["failure"] == {"Error": "BadHost", "Cause": "no driver"}


def test_heartbeats_extend_the_wait(bench: Bench) -> None:
    execution = bench.start({"Wait": bench.task(HeartbeatSeconds=20, TimeoutSeconds=600)})
    [token] = bench.tokens(execution)

    for _ in range(3):
        pause(10)
        bench.sfn.send_task_heartbeat(taskToken=token)

    assert bench.sfn.describe_execution(executionArn=execution)["status"] == "RUNNING"
    bench.sfn.send_task_success(taskToken=token, output="{}")
    assert bench.output(execution) == {}


@pytest.mark.parametrize("error", ["States.HeartbeatTimeout", "States.Timeout", "States.ALL"])
def test_missed_heartbeats_are_caught_by_each_of_their_names(bench: Bench, error: str) -> None:
    task = bench.task(HeartbeatSeconds=1, TimeoutSeconds=600, **caught(error))

    assert "failure" in bench.output(bench.start({"Wait": task, **CAUGHT}))


def test_heartbeats_do_not_extend_the_time_out(bench: Bench) -> None:
    task = bench.task(HeartbeatSeconds=25, TimeoutSeconds=30, **caught("States.Timeout"))
    execution = bench.start({"Wait": task, **CAUGHT})
    [token] = bench.tokens(execution)

    for _ in range(2):
        pause(10)
        bench.sfn.send_task_heartbeat(taskToken=token)

    assert bench.output(execution)["failure"]["Error"] == "States.Timeout"


def test_limits_may_come_from_the_input(bench: Bench) -> None:
    both = {"HeartbeatSecondsPath": "$.heartbeat", "TimeoutSecondsPath": "$.timeout"}
    heartbeat = bench.task(**both, **caught("States.HeartbeatTimeout"))
    time_out = bench.task(TimeoutSecondsPath="$.timeout", **caught("States.Timeout"))

    missed = bench.start({"Wait": heartbeat, **CAUGHT}, {"heartbeat": 1, "timeout": 600})
    over = bench.start({"Wait": time_out, **CAUGHT}, {"timeout": 1})

    assert "failure" in bench.output(missed)
    assert bench.output(over)["failure"]["Error"] == "States.Timeout"


@pytest.mark.parametrize(
    ("heartbeat", "timeout"),
    [(0, 60), (-1, 60), (1.5, 60), ("30", 60), (None, 60), (60, 60), (90, 60), (30, 0)],
)
def test_impossible_limits_fail_the_execution_and_nothing_catches_it(
    bench: Bench, heartbeat: object, timeout: object
) -> None:
    task = bench.task(
        HeartbeatSecondsPath="$.heartbeat",
        TimeoutSecondsPath="$.timeout",
        Retry=[{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 1}],
        **caught("States.ALL"),
    )
    execution = bench.start({"Wait": task, **CAUGHT}, {"heartbeat": heartbeat, "timeout": timeout})

    described = bench.ended(execution)

    assert (described["status"], described["error"]) == ("FAILED", "States.Runtime")
    assert "TaskScheduled" not in [event["type"] for event in bench.history(execution)]


def test_each_attempt_has_a_token_of_its_own(bench: Bench) -> None:
    retry = [{"ErrorEquals": ["Again"], "IntervalSeconds": 1, "MaxAttempts": 1}]
    execution = bench.start({"Wait": bench.task(Retry=retry)})
    [first] = bench.tokens(execution)
    bench.sfn.send_task_failure(taskToken=first, error="Again")
    _, second = bench.tokens(execution, count=2)

    with pytest.raises(bench.sfn.exceptions.TaskTimedOut):
        bench.sfn.send_task_success(taskToken=first, output='"late"')

    assert first != second
    bench.sfn.send_task_success(taskToken=second, output='"second"')
    assert bench.output(execution) == "second"


def test_the_second_answer_to_a_token_is_too_late(bench: Bench) -> None:
    execution = bench.start({"Wait": bench.task()})
    [token] = bench.tokens(execution)
    bench.sfn.send_task_success(taskToken=token, output="1")

    late: list[Callable[[], object]] = [
        lambda: bench.sfn.send_task_success(taskToken=token, output="2"),
        lambda: bench.sfn.send_task_failure(taskToken=token, error="E"),
        lambda: bench.sfn.send_task_heartbeat(taskToken=token),
    ]
    for call in late:
        with pytest.raises(bench.sfn.exceptions.TaskTimedOut):
            call()
    assert bench.output(execution) == 1
    for call in late:
        with pytest.raises(bench.sfn.exceptions.TaskTimedOut):
            call()


def test_an_unknown_token_is_invalid(bench: Bench) -> None:
    with pytest.raises(bench.sfn.exceptions.InvalidToken):
        bench.sfn.send_task_success(taskToken="no such token", output="{}")
    with pytest.raises(bench.sfn.exceptions.InvalidToken):
        bench.sfn.send_task_heartbeat(taskToken="no such token")


# -- stops -------------------------------------------------------------------------------------------------


def test_a_stop_ends_a_wait_for_a_callback_and_is_not_caught(bench: Bench) -> None:
    task = bench.task(HeartbeatSeconds=500, TimeoutSeconds=600, **caught("States.ALL"))
    execution = bench.start({"Wait": task, **CAUGHT})
    [token] = bench.tokens(execution)
    bench.submitted(execution)

    bench.sfn.stop_execution(executionArn=execution, error="ByHand", cause="a person")

    described = bench.ended(execution)
    assert (described["status"], described["error"], described["cause"]) == ("ABORTED", "ByHand", "a person")
    types = [event["type"] for event in bench.history(execution)]
    assert types[-1] == "ExecutionAborted"
    assert "TaskTimedOut" not in types
    with pytest.raises(bench.sfn.exceptions.TaskTimedOut):
        bench.sfn.send_task_success(taskToken=token, output="{}")


@pytest.mark.parametrize("state", ["wait", "retry"])
def test_a_stop_ends_waits_and_pauses_between_attempts(
    bench: Bench, deploy: Callable[[Any], str], calls: Callable[[str], list[Any]], state: str
) -> None:
    def fails(_event: Any) -> None:
        raise ConnectionError("down")

    arn = deploy(fails)
    states = {
        "wait": {"Type": "Wait", "Seconds": 600, "End": True},
        "retry": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": {"FunctionName": arn, "Payload": {}},
            "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 600, "MaxAttempts": 3}],
            "End": True,
        },
    }
    execution = bench.start({"Only": states[state]})
    if state == "retry":
        eventually(lambda: len(calls(arn)), lambda count: count == 1)

    bench.sfn.stop_execution(executionArn=execution)

    assert bench.ended(execution)["status"] == "ABORTED"


def test_an_execution_can_be_stopped_as_soon_as_it_has_started(bench: Bench) -> None:
    execution = bench.start({"Only": {"Type": "Wait", "Seconds": 600, "End": True}})

    bench.sfn.stop_execution(executionArn=execution)

    assert bench.ended(execution)["status"] == "ABORTED"


# -- functions ---------------------------------------------------------------------------------------------


def invoke_task(arn: str, **more: object) -> dict[str, Any]:
    parameters = {"FunctionName": arn, "Payload.$": "$"}
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": parameters,
        "End": True,
    } | more


def test_a_function_answers_under_payload(bench: Bench) -> None:
    task = invoke_task(bench.echo, ResultSelector={"answer.$": "$.Payload.question"})

    assert bench.output(bench.start({"Ask": task}, {"question": 42})) == {"answer": 42}


def test_an_exception_is_caught_by_its_name_and_described_as_json(
    bench: Bench, deploy: Callable[[Any], str]
) -> None:
    def raises(_event: Any) -> None:
        raise LookupError("no such run")

    execution = bench.start({"Ask": invoke_task(deploy(raises), **caught("LookupError")), **CAUGHT})

    failure = bench.output(execution)["failure"]
    assert failure["Error"] == "LookupError"
    assert json.loads(failure["Cause"])["errorMessage"] == "no such run"


def test_a_missing_function_is_an_error_of_lambda(bench: Bench) -> None:
    task = invoke_task(bench.echo + "-gone", **caught("Lambda.ResourceNotFoundException"))

    assert "failure" in bench.output(bench.start({"Ask": task, **CAUGHT}))


def test_attempts_follow_until_one_succeeds(bench: Bench, deploy: Callable[[Any], str]) -> None:
    left = ["throttled", "throttled"]

    def at_last(_event: Any) -> str:
        if left:
            raise TimeoutError(left.pop())
        return "done"

    retry = [{"ErrorEquals": ["TimeoutError"], "IntervalSeconds": 1, "BackoffRate": 1.5, "MaxAttempts": 5}]

    assert bench.output(bench.start({"Ask": invoke_task(deploy(at_last), Retry=retry)}))["Payload"] == "done"


# -- executions --------------------------------------------------------------------------------------------


def test_executions_without_a_name_get_their_own(bench: Bench) -> None:
    machine = bench.machine({"Only": {"Type": "Succeed"}})

    first, second = (
        bench.sfn.start_execution(stateMachineArn=machine, input=given) for given in ("{}", '{"n": 2}')
    )

    assert first["executionArn"] != second["executionArn"]


def test_a_name_starts_one_execution_however_often_and_fast_it_is_asked_for(bench: Bench) -> None:
    machine = bench.machine({"Only": {"Type": "Wait", "Seconds": 50, "End": True}})

    with ThreadPoolExecutor(4) as pool:
        answers = list(
            pool.map(
                lambda _: bench.sfn.start_execution(stateMachineArn=machine, name="run-1", input="{}"),
                range(8),
            )
        )

    assert len({answer["executionArn"] for answer in answers}) == 1
    assert len(bench.sfn.list_executions(stateMachineArn=machine)["executions"]) == 1
    with pytest.raises(bench.sfn.exceptions.ExecutionAlreadyExists):
        bench.sfn.start_execution(stateMachineArn=machine, name="run-1", input='{"other": 1}')
    bench.sfn.stop_execution(executionArn=answers[0]["executionArn"])
    with pytest.raises(bench.sfn.exceptions.ExecutionAlreadyExists):
        bench.sfn.start_execution(stateMachineArn=machine, name="run-1", input="{}")


def test_history_comes_in_pages_and_backwards(bench: Bench) -> None:
    execution = bench.start({"One": {"Type": "Pass", "Next": "Two"}, "Two": {"Type": "Pass", "End": True}})
    bench.ended(execution)
    whole = [event["id"] for event in bench.history(execution)]

    paged: list[int] = []
    request: dict[str, Any] = {"executionArn": execution, "maxResults": 2}
    while True:
        page = bench.sfn.get_execution_history(**request)
        assert len(page["events"]) <= 2
        paged += [event["id"] for event in page["events"]]
        if "nextToken" not in page:
            break
        request["nextToken"] = page["nextToken"]
    backwards = bench.sfn.get_execution_history(executionArn=execution, reverseOrder=True, maxResults=1)

    assert paged == whole == [1, 2, 3, 4, 5, 6]
    assert backwards["events"][0]["type"] == "ExecutionSucceeded"


def test_status_changes_are_events(
    bench: Bench, aws: EmbeddedAws, deploy: Callable[[Any], str], calls: Callable[[str], list[Any]]
) -> None:
    def listen(_event: Any) -> None:
        return None

    arn, events = deploy(listen), aws.client("events")
    machine = bench.machine({"Only": {"Type": "Fail", "Error": "Boom", "Cause": "why"}})
    pattern = {
        "source": ["aws.states"],
        "detail-type": ["Step Functions Execution Status Change"],
        "detail": {"stateMachineArn": [machine], "status": ["FAILED", "ABORTED", "TIMED_OUT"]},
    }
    events.put_rule(Name="executions", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="executions", Targets=[{"Id": "1", "Arn": arn}])

    execution = bench.sfn.start_execution(stateMachineArn=machine, name="run-7", input='{"run_id": "7"}')

    [event] = eventually(lambda: calls(arn), bool)
    detail = event["detail"]
    assert (detail["executionArn"], detail["name"]) == (execution["executionArn"], "run-7")
    assert (detail["status"], detail["error"], detail["cause"]) == ("FAILED", "Boom", "why")
    assert json.loads(detail["input"]) == {"run_id": "7"}
    events.remove_targets(Rule="executions", Ids=["1"])


@pytest.mark.parametrize("status", ["ABORTED", "TIMED_OUT"])
def test_an_end_from_outside_is_an_event_too(
    bench: Bench,
    aws: EmbeddedAws,
    deploy: Callable[[Any], str],
    calls: Callable[[str], list[Any]],
    status: str,
) -> None:
    def listen(_event: Any) -> None:
        return None

    arn, events = deploy(listen), aws.client("events")
    limit = {"TimeoutSeconds": 2} if status == "TIMED_OUT" else {}
    machine = bench.machine({"Only": {"Type": "Wait", "Seconds": 600, "End": True}}, **limit)
    pattern = {"source": ["aws.states"], "detail": {"stateMachineArn": [machine], "status": [status]}}
    events.put_rule(Name=status, EventPattern=json.dumps(pattern))
    events.put_targets(Rule=status, Targets=[{"Id": "1", "Arn": arn}])

    execution = bench.sfn.start_execution(stateMachineArn=machine, input='{"run_id": "8"}')["executionArn"]
    if status == "ABORTED":
        bench.sfn.stop_execution(executionArn=execution)

    [event] = eventually(lambda: calls(arn), bool)
    assert (event["detail"]["executionArn"], event["detail"]["status"]) == (execution, status)
    assert json.loads(event["detail"]["input"]) == {"run_id": "8"}
    events.remove_targets(Rule=status, Ids=["1"])


def test_an_unknown_execution_is_refused(bench: Bench) -> None:
    with pytest.raises(ClientError) as refused:
        bench.sfn.describe_execution(executionArn="arn:aws:states:us-east-1:123456789012:execution:none:none")
    assert refused.value.response["Error"]["Code"] in {"ExecutionDoesNotExist", "StateMachineDoesNotExist"}
