"""Step Functions, inside a state: attempts, time-outs, heartbeats, task tokens, waits and retries."""

from __future__ import annotations

import contextlib
import copy
import time
from threading import Condition, Event, Thread
from typing import TYPE_CHECKING, Any

from moto.core.exceptions import AWSError
from moto.stepfunctions.parser.api import HistoryEventType
from moto.stepfunctions.parser.asl.component.common.catch.catch_outcome import CatchOutcome
from moto.stepfunctions.parser.asl.component.common.error_name.error_equals_decl import ErrorEqualsDecl
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import (
    FailureEvent,
    FailureEventException,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import StatesErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import (
    StatesErrorNameType,
)
from moto.stepfunctions.parser.asl.component.common.retry.max_attempts_decl import MaxAttemptsOutcome
from moto.stepfunctions.parser.asl.component.common.retry.retrier_decl import RetrierDecl
from moto.stepfunctions.parser.asl.component.common.retry.retrier_outcome import RetrierOutcome
from moto.stepfunctions.parser.asl.component.common.retry.retry_outcome import RetryOutcome
from moto.stepfunctions.parser.asl.component.common.timeouts.timeout import EvalTimeoutError
from moto.stepfunctions.parser.asl.component.state.exec.execute_state import ExecutionState
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.resource import ResourceCondition
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_callback import (
    StateTaskServiceCallback,
)
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import WaitFunction
from moto.stepfunctions.parser.asl.eval.callback.callback import (
    CallbackOutcomeTimedOut,
    CallbackPoolManager,
    HeartbeatTimedOut,
    HeartbeatTimeoutError,
)
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails
from moto.stepfunctions.parser.asl.eval.event.event_manager import EventManager
from moto.stepfunctions.parser.asl.eval.program_state import ProgramStopped, ProgramTimedOut

from tensorant_local.aws.mending import Mends
from tensorant_local.aws.running import cloud

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNTIME = "States.Runtime"
DATA_LIMIT_EXCEEDED = "States.DataLimitExceeded"
HEARTBEAT_TIMEOUT = "States.HeartbeatTimeout"

mends = Mends()
apply = mends.apply


def scaled(seconds: float) -> float:
    """Real seconds for seconds of a definition."""
    return seconds * cloud().time_scale


# -- ends from outside -------------------------------------------------------------------------------------


@mends(Environment, "__init__")
def waits_cannot_be_interrupted(original: Any, env: Any, *args: Any, **kwargs: Any) -> None:
    """StopExecution and time-outs wake whatever waits on the execution."""
    original(env, *args, **kwargs)
    env.wakers = []


def _ending(method: str) -> None:
    @mends(Environment, method)
    def an_end_wakes_nobody(original: Any, env: Any, *args: Any, **kwargs: Any) -> None:
        """Applies to every way an execution or a branch can end."""
        if isinstance(env._program_state, ProgramStopped | ProgramTimedOut) and method != "set_ended":
            return  # the first end is final: a failure on the way out is no second one
        original(env, *args, **kwargs)
        for waker in list(env.wakers):
            waker.set()


for _method in ("set_stop", "set_error", "set_timed_out", "set_ended"):
    _ending(_method)


@contextlib.contextmanager
def _interruptible(env: Any) -> Iterator[Event]:
    """An event to wait on, which is set when `env` ends."""
    waker = Event()
    env.wakers.append(waker)
    try:
        if not env.is_running():
            waker.set()
        yield waker
    finally:
        env.wakers.remove(waker)


@mends(WaitFunction, "_wait_interval")
def a_wait_can_miss_its_interruption(_original: Any, _wait: Any, env: Any, wait_seconds: float) -> None:
    with _interruptible(env) as ended:
        ended.wait(max(0.0, scaled(wait_seconds)))


@mends(RetrierDecl, "_eval_body")
def a_retry_sleeps_through_a_stop(_original: Any, retrier: Any, env: Any) -> None:
    retrier.error_equals.eval(env)
    if not env.stack.pop():
        env.stack.append(RetrierOutcome.Skipped)
        return
    retrier.max_attempts.eval(env=env)
    if env.stack.pop() == MaxAttemptsOutcome.EXHAUSTED:
        env.stack.append(RetrierOutcome.Failed)
        return
    for step in (
        retrier.interval_seconds,
        retrier.backoff_rate,
        retrier.max_delay_seconds,
        retrier.jitter_strategy,
    ):
        step.eval(env=env)
    with _interruptible(env) as ended:
        ended.wait(scaled(env.stack.pop()))
    env.stack.append(RetrierOutcome.Executed)


# -- task tokens -------------------------------------------------------------------------------------------


class TaskToken:
    """One wait for a callback. The first outcome, or the end of its attempt, closes it for good.

    It stands where moto has a callback endpoint and a heartbeat endpoint, which lost an outcome that came
    before the wait began, and refused a heartbeat that did.
    """

    def __init__(self, callback_id: str) -> None:
        self.callback_id = callback_id
        self._changed = Condition()
        self._closed = False
        self._outcome: Any = None
        self._last_beat = time.monotonic()

    def notify(self, outcome: Any) -> None:
        """Take the outcome. Raises `TaskTimedOut` if the token is closed."""
        with self._changed:
            self._refuse_if_closed()
            self._outcome = outcome
            self.interrupt_all()

    def notify_heartbeat(self) -> None:
        """Begin the heartbeat's seconds anew. Raises `TaskTimedOut` if the token is closed."""
        with self._changed:
            self._refuse_if_closed()
            self._last_beat = time.monotonic()

    def interrupt_all(self) -> None:
        """Close the token; what comes later is too late."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def setup_heartbeat_endpoint(self, heartbeat_seconds: int) -> int:
        return heartbeat_seconds

    def outcome(self, heartbeat_seconds: float | None) -> Any:
        """Wait until the token closes or its heartbeats stop. None if it closed without an outcome."""
        with self._changed:
            self._last_beat = time.monotonic()
            while not self._closed:
                left = (
                    None
                    if heartbeat_seconds is None
                    else self._last_beat + heartbeat_seconds - time.monotonic()
                )
                if left is not None and left <= 0:
                    self.interrupt_all()
                    return HeartbeatTimedOut()
                self._changed.wait(left)
            return self._outcome

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise AWSError(
                "Task Timed Out: 'Provided task does not exist anymore'", exception_type="TaskTimedOut"
            )


@mends(CallbackPoolManager, "add")
def early_callbacks_are_lost(_original: Any, pool: Any, callback_id: str) -> TaskToken:
    """An outcome or a heartbeat may come before the Lambda that passed the token on has returned."""
    token = TaskToken(callback_id)
    pool._pool[callback_id] = token
    return token


@mends(StateTaskServiceCallback, "_eval_wait_for_task_token")
def heartbeats_and_outcomes_race(
    _original: Any,
    _state: Any,
    env: Any,
    timeout_seconds: int,
    callback_endpoint: TaskToken,
    heartbeat_endpoint: int | None,
) -> Any:
    """The time-out is the attempt's: it closes the token."""
    del env, timeout_seconds
    outcome = callback_endpoint.outcome(None if heartbeat_endpoint is None else scaled(heartbeat_endpoint))
    return CallbackOutcomeTimedOut(callback_endpoint.callback_id) if outcome is None else outcome


def _fresh_token(state: Any, env: Any) -> TaskToken | None:
    """Moto makes one token for all attempts of a state, so a late answer to the first reached the second."""
    if (
        not isinstance(state, StateTaskServiceCallback)
        or state.resource.condition != ResourceCondition.WaitForTaskToken
    ):
        return None
    token: TaskToken = env.callback_pool_manager.add(env.states.context_object.update_task_token())
    return token


# -- attempts ----------------------------------------------------------------------------------------------


@mends(ExecutionState, "_evaluate_with_timeout")
def an_attempt_outlives_a_stop(_original: Any, state: Any, env: Any) -> None:
    """Each attempt has its limits checked and its own token, and ends at once with its execution."""
    timeout_seconds = _checked_limits(state, env)
    token = _fresh_token(state, env)
    output = _run_attempt(state, env, token, scaled(timeout_seconds))
    env.stack.append(output)
    if not state._is_language_query_jsonpath():
        env.states.set_result(output)
    for step in (state.assign_decl, state.result_selector):
        if step:
            step.eval(env=env)
    if state.result_path:
        state.result_path.eval(env)
    else:
        env.states.reset(input_value=env.stack.pop())


def _run_attempt(state: Any, env: Any, token: TaskToken | None, timeout_seconds: float) -> Any:
    frame = env.open_frame()
    frame.states.reset(input_value=env.states.get_input())
    frame.stack = copy.deepcopy(env.stack)
    ends: list[Exception | None] = []
    with _interruptible(env) as ended:

        def attempt() -> None:
            try:
                state._eval_execution(frame)
                ends.append(None)
            except Exception as error:
                ends.append(error)
            ended.set()

        Thread(target=attempt, name="attempt", daemon=True).start()
        ended.wait(timeout_seconds)
    end = ends[0] if ends else EvalTimeoutError()
    if token:
        token.interrupt_all()
    frame.set_ended()
    env.close_frame(frame)
    frame.event_history_context.closed = True
    if end:
        raise end
    return frame.stack[-1]


@mends(EventManager, "add_event")
def an_abandoned_attempt_writes_history(
    original: Any, manager: Any, context: Any, *args: Any, **kwargs: Any
) -> int:
    """After its time-out an attempt may still come back from its Lambda."""
    if getattr(context, "closed", False):
        return int(context.last_published_event_id)
    return int(original(manager, context, *args, **kwargs))


def _checked_limits(state: Any, env: Any) -> int:
    """The attempt's time-out in seconds.

    moto takes any number. AWS wants positive integers, and the heartbeat below the time-out; else the
    execution fails with States.Runtime (States.HeartbeatSecondsPath of the Amazon States Language).
    """
    state.timeout.eval(env=env)
    timeout_seconds = _positive(env, "TimeoutSeconds", env.stack.pop())
    if state.heartbeat:
        state.heartbeat.eval(env=env)
        heartbeat_seconds = _positive(env, "HeartbeatSeconds", env.stack.pop())
        if state.timeout.is_default_value():
            return int(state.timeout.DEFAULT_TIMEOUT_SECONDS)
        if heartbeat_seconds >= timeout_seconds:
            cause = f"HeartbeatSeconds ({heartbeat_seconds}) must be smaller than TimeoutSeconds ({timeout_seconds})."
            raise _runtime_failure(env, cause)
    return timeout_seconds


def _positive(env: Any, name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise _runtime_failure(env, f"{name} must be a positive integer, not {value!r}.")
    return value


def _runtime_failure(env: Any, cause: str) -> Exception:
    details = EventDetails(executionFailedEventDetails={"error": RUNTIME, "cause": cause})
    failure: Exception = FailureEventException(
        FailureEvent(
            env, StatesErrorName(StatesErrorNameType.StatesRuntime), HistoryEventType.ExecutionFailed, details
        )
    )
    return failure


# -- errors ------------------------------------------------------------------------------------------------


@mends(ExecutionState, "_eval_state")
def a_stopped_state_fails_and_is_caught(_original: Any, state: Any, env: Any) -> None:
    """Attempts follow until one succeeds, is caught, or none is left; a stop ends them, and so does States.Runtime."""
    env.states.context_object.context_object_data["State"]["RetryCount"] = 0
    while env.is_running():
        try:
            state._evaluate_with_timeout(env)
        except Exception as error:
            if not env.is_running() or not _tries_again(state, env, state._from_error(env=env, ex=error)):
                return
        else:
            return


def _tries_again(state: Any, env: Any, failure: Any) -> bool:
    """True for another attempt, False where the failure was caught. Raises it where it wasn't."""
    if failure.error_name and failure.error_name.error_name == RUNTIME:
        state._handle_uncaught(env=env, failure_event=failure)
    env.event_manager.add_event(
        context=env.event_history_context, event_type=failure.event_type, event_details=failure.event_details
    )
    error_output = state._construct_error_output_value(failure_event=failure)
    env.states.set_error_output(error_output)
    env.states.set_result(error_output)
    if state.retry and state._handle_retry(env=env, failure_event=failure) == RetryOutcome.CanRetry:
        return True
    if state.catch and env.is_running():
        state._handle_catch(env=env, failure_event=failure)
        if env.stack[-1] == CatchOutcome.Caught:
            return False
    state._handle_uncaught(env=env, failure_event=failure)
    return False


@mends(ErrorEqualsDecl, "_eval_body")
def states_all_catches_everything(_original: Any, declaration: Any, env: Any) -> None:
    """AWS: States.ALL catches neither States.Runtime nor States.DataLimitExceeded; nothing catches the former."""
    declared = {name.error_name for name in declaration.error_names}
    env.stack.append(bool(declared & _names_that_match(env.stack.pop())))


def _names_that_match(error: Any) -> set[str | None]:
    if error.error_name == RUNTIME:
        return set()
    names = {error.error_name}
    if error.error_name != DATA_LIMIT_EXCEEDED:
        names.add("States.ALL")
    if error.error_name == HEARTBEAT_TIMEOUT:
        names.add("States.Timeout")
    if not isinstance(error, StatesErrorName):
        names.add("States.TaskFailed")
    return names


@mends(StateTaskServiceCallback, "_from_error")
def missed_heartbeats_have_no_name_of_their_own(original: Any, state: Any, env: Any, ex: Exception) -> Any:
    """So `States.HeartbeatTimeout` was never caught."""
    failure = original(state, env=env, ex=ex)
    if not isinstance(ex, HeartbeatTimeoutError):
        return failure
    failure.event_details["taskTimedOutEventDetails"]["error"] = HEARTBEAT_TIMEOUT
    name = StatesErrorName(StatesErrorNameType.StatesHeartbeatTimeout)
    return FailureEvent(env, name, failure.event_type, failure.event_details)
