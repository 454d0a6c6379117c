"""Step Functions, seen from its API: executions, their ends and history, and callbacks."""

from __future__ import annotations

import base64
import binascii
import functools
import json
from datetime import UTC, datetime
from threading import RLock, Thread
from typing import Any
from uuid import uuid4

from moto.core.exceptions import AWSError
from moto.core.responses import ActionResult, EmptyResult
from moto.stepfunctions.parser.api import (
    ExecutionStartedEventDetails,
    ExecutionStatus,
    HistoryEventExecutionDataDetails,
    HistoryEventType,
)
from moto.stepfunctions.parser.asl.component.eval_component import EvalComponent
from moto.stepfunctions.parser.asl.component.program.program import Program
from moto.stepfunctions.parser.asl.eval.callback.callback import (
    CallbackOutcomeFailure,
    CallbackOutcomeSuccess,
)
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails
from moto.stepfunctions.parser.asl.eval.program_state import ProgramEnded, ProgramStopped
from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser
from moto.stepfunctions.parser.asl.utils.encoding import to_json_str
from moto.stepfunctions.parser.backend.execution import BaseExecutionWorkerCommunication
from moto.stepfunctions.parser.backend.execution_worker import ExecutionWorker
from moto.stepfunctions.parser.models import StepFunctionsParserBackend, stepfunctions_parser_backends
from moto.stepfunctions.responses import StepFunctionResponse

from tensorant_local.aws import events, stepfunctions_waits
from tensorant_local.aws.mending import Mends
from tensorant_local.aws.stepfunctions_waits import TaskToken, scaled

PATIENCE_SECONDS = 5.0
"""For an execution that was stopped to come to its end."""
HISTORY_PAGE = 100
HISTORY_PAGE_MAXIMUM = 1000

mends = Mends()
_starting = RLock()


def apply() -> None:
    """Mend Step Functions; safe to repeat."""
    stepfunctions_waits.apply()
    mends.apply()


def stop_all() -> None:
    """Abort every execution, and wait for their ends."""
    running = [
        execution for backend in _backends() for execution in backend._get_executions(ExecutionStatus.RUNNING)
    ]
    for execution in running:
        execution.stop(stop_date=_now(), error=None, cause=None)
    for execution in running:
        execution.exec_worker.thread.join(PATIENCE_SECONDS)


def _backends() -> list[Any]:
    return [backend for account in stepfunctions_parser_backends.values() for backend in account.values()]


def _now() -> datetime:
    return datetime.now(tz=UTC)


# -- executions --------------------------------------------------------------------------------------------


@mends(StepFunctionsParserBackend, "start_execution")
def unnamed_executions_share_a_name(
    original: Any, backend: Any, state_machine_arn: str, name: str | None = None, *args: Any, **kwargs: Any
) -> Any:
    """And two requests at once with one name made two executions."""
    with _starting:
        return original(backend, state_machine_arn, name or str(uuid4()), *args, **kwargs)


@mends(AmazonStateLanguageParser, "parse")
def a_definition_is_parsed_at_every_start(original: Any, definition: str) -> Any:
    """Which takes most of a second for ours. Only maps and parallels keep something in what was parsed."""
    if '"Map"' in definition or '"Parallel"' in definition:
        return original(definition)
    return _parsed(original, definition)


@functools.lru_cache(maxsize=16)
def _parsed(parse: Any, definition: str) -> Any:
    return parse(definition)


@mends(ExecutionWorker, "start")
def an_execution_cannot_be_stopped_at_its_start(_original: Any, worker: Any) -> None:
    """Moto makes the execution's environment some time after StartExecution has answered."""
    program = worker._get_evaluation_entrypoint()
    worker.env = worker._get_evaluation_environment()
    worker.env.next_state_name = program.start_at.start_at_name
    worker.thread = Thread(target=_run, args=(worker, program), name="execution", daemon=True)
    _announce(worker._execution_communication.execution)
    worker.thread.start()


def _run(worker: Any, program: Any) -> None:
    details = worker._evaluation_details
    worker.env.event_manager.add_event(
        context=worker.env.event_history_context,
        event_type=HistoryEventType.ExecutionStarted,
        event_details=EventDetails(
            executionStartedEventDetails=ExecutionStartedEventDetails(
                input=to_json_str(details.execution_details.inpt),
                inputDetails=HistoryEventExecutionDataDetails(truncated=False),
                roleArn=details.aws_execution_details.role_arn,
            )
        ),
        update_source_event_id=False,
    )
    program.eval(worker.env)
    worker._execution_communication.terminated()


@mends(Program, "eval")
def a_timed_out_execution_runs_on(_original: Any, program: Any, env: Any) -> None:
    """TimeoutSeconds of a state machine ends what waits in it."""
    timeout_seconds = scaled(program.timeout_seconds.timeout_seconds) if program.timeout_seconds else None
    if not env.is_frame() and not env.is_running():
        return
    if env.is_frame():
        env.next_state_name = program.start_at.start_at_name
    thread = Thread(target=EvalComponent.eval, args=(program, env), name="program", daemon=True)
    thread.start()
    thread.join(timeout_seconds)
    if thread.is_alive():
        env.set_timed_out()
        thread.join(PATIENCE_SECONDS)


@mends(BaseExecutionWorkerCommunication, "terminated")
def an_end_is_not_told(original: Any, communication: Any) -> None:
    """A stop keeps its error and cause, an output that is a string its quotes; and every end is an event."""
    execution = communication.execution
    end = execution.exec_worker.env.program_state()
    if isinstance(end, ProgramStopped):
        execution.error, execution.cause = end.error, end.cause
    original(communication)
    if isinstance(end, ProgramEnded):
        execution.output = to_json_str(execution.output, separators=(",", ":"))
    _announce(execution)


@mends(StepFunctionResponse, "stop_execution")
def a_stop_loses_its_error_and_cause(_original: Any, response: Any) -> Any:
    """And the answer came before the end."""
    execution = response.stepfunction_backend.describe_execution(response._get_param("executionArn"))
    if execution.status == ExecutionStatus.RUNNING:
        error, cause = response._get_param("error"), response._get_param("cause")
        execution.stop(stop_date=_now(), error=error, cause=cause)
        execution.exec_worker.thread.join(PATIENCE_SECONDS)
    return ActionResult({"stopDate": execution.stop_date or _now()})


def _announce(execution: Any) -> None:
    """Put the status change on the default bus.

    Source: https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html
    """
    ended = execution.status != ExecutionStatus.RUNNING
    detail = {
        "executionArn": execution.exec_arn,
        "stateMachineArn": execution.state_machine.arn,
        "name": execution.name,
        "status": str(execution.status),
        "startDate": _milliseconds(execution.start_date),
        "stopDate": _milliseconds(execution.stop_date) if ended else None,
        "input": execution.execution_input,
        "output": execution.output,
        "error": execution.error,
        "cause": execution.cause,
    }
    events.emit(
        execution.account_id,
        execution.region_name,
        source="aws.states",
        detail_type="Step Functions Execution Status Change",
        detail=detail,
        resources=[execution.exec_arn],
    )


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


# -- history -----------------------------------------------------------------------------------------------


@mends(StepFunctionResponse, "get_execution_history")
def history_comes_in_one_piece(_original: Any, response: Any) -> Any:
    """reverseOrder, maxResults and nextToken were ignored."""
    arn = response._get_param("executionArn")
    history = response.stepfunction_backend.get_execution_history(arn)["events"]
    if response._get_param("reverseOrder"):
        history = history[::-1]
    start = _offset(response._get_param("nextToken"))
    size = min(response._get_int_param("maxResults") or HISTORY_PAGE, HISTORY_PAGE_MAXIMUM)
    page: dict[str, Any] = {"events": history[start : start + size]}
    if start + size < len(history):
        page["nextToken"] = base64.b64encode(json.dumps([arn, start + size]).encode()).decode()
    return ActionResult(page)


def _offset(token: str | None) -> int:
    if not token:
        return 0
    try:
        return int(json.loads(base64.b64decode(token, validate=True))[1])
    except (binascii.Error, ValueError, IndexError) as error:
        raise AWSError("Invalid Token: 'Invalid token'", exception_type="InvalidToken") from error


# -- callbacks ---------------------------------------------------------------------------------------------


def _token(backend: Any, task_token: str) -> TaskToken:
    for execution in backend._get_executions():
        token: TaskToken | None = execution.exec_worker.env.callback_pool_manager.get(task_token)
        if token:
            return token
    raise AWSError("Invalid Token: 'Invalid token'", exception_type="InvalidToken")


@mends(StepFunctionsParserBackend, "send_task_success")
def a_late_success_is_an_invalid_token(_original: Any, backend: Any, task_token: str, outcome: str) -> None:
    """A closed token answers TaskTimedOut, however its attempt or execution ended."""
    try:
        json.loads(outcome)
    except ValueError as error:
        raise AWSError(
            "Invalid Output: 'Output is not a valid JSON'", exception_type="InvalidOutput"
        ) from error
    _token(backend, task_token).notify(CallbackOutcomeSuccess(callback_id=task_token, output=outcome))


@mends(StepFunctionsParserBackend, "send_task_heartbeat")
def an_early_heartbeat_is_an_invalid_token(_original: Any, backend: Any, task_token: str) -> None:
    _token(backend, task_token).notify_heartbeat()


@mends(StepFunctionResponse, "send_task_failure")
def a_failure_loses_its_cause(_original: Any, response: Any) -> Any:
    task_token = response._get_param("taskToken")
    error, cause = response._get_param("error"), response._get_param("cause")
    failure = CallbackOutcomeFailure(callback_id=task_token, error=error, cause=cause)
    _token(response.stepfunction_backend, task_token).notify(failure)
    return EmptyResult()
