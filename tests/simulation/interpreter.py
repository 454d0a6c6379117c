"""Executes a state machine on virtual time, as Step Functions does.

Source: Amazon States Language specification (retriers are tried in order and each counts for itself; a
catcher sees what no retrier takes; States.ALL takes neither States.Runtime nor States.DataLimitExceeded),
and the Step Functions guide (task tokens, heartbeats, redrive resumes at the state that failed).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from random import Random
from typing import Any

from tests.simulation.definition import KEEP_INPUT, TOKEN_PATH, Definition, State
from tests.simulation.scheduler import Scheduler, Timer

RUNTIME, TIMEOUT, HEARTBEAT = "States.Runtime", "States.Timeout", "States.HeartbeatTimeout"
ALL = "States.ALL"
NEVER_CAUGHT = {RUNTIME, "States.DataLimitExceeded"}


class Status(StrEnum):
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    ABORTED = "ABORTED"


class ExecutionAlreadyExists(Exception):
    """An execution of that name was started before."""


@dataclass(frozen=True)
class TaskError:
    """How a task failed: the error's name and its cause."""

    name: str
    cause: str = ""


@dataclass(frozen=True)
class Answered:
    """What a function returned."""

    payload: Any


Invoke = Callable[[str, dict[str, Any], Callable[[Answered | TaskError], None]], None]
"""Invokes a function by its name with a payload; its last argument is called once, at once or later."""


@dataclass
class Wait:
    """One wait for a task token; `given` is the state's input."""

    token: str
    given: Any
    ended: float | None = None


@dataclass(eq=False)
class Execution:
    name: str
    input: dict[str, Any]
    status: Status = Status.RUNNING
    state: str = ""
    state_input: Any = None
    path: list[str] = field(default_factory=list)
    """The states entered, in order; a retried one is there once."""
    error: TaskError | None = None
    redrives: int = 0
    generation: int = 0
    """Raised whenever the present state is left: whoever still answers for it comes too late."""
    retries: dict[int, int] = field(default_factory=dict)
    token: str | None = None
    waits: list[Wait] = field(default_factory=list)
    """Every wait for a task token, in order."""
    _timers: list[Timer] = field(default_factory=list)

    @property
    def over(self) -> bool:
        return self.status is not Status.RUNNING


@dataclass
class Interpreter:
    """One state machine and its executions. `ended` hears of every execution that ends."""

    definition: Definition
    scheduler: Scheduler
    invoke: Invoke
    random: Random
    ended: Callable[[Execution], object] = lambda _: None
    executions: dict[str, Execution] = field(default_factory=dict)
    ways: set[tuple[str, str, str]] = field(default_factory=set)
    """The ways between states that were taken (see `State.ways`)."""
    _waits: dict[str, tuple[Execution, int, float]] = field(default_factory=dict)
    _beats: dict[str, Timer] = field(default_factory=dict)
    _tokens: int = 0

    # -- from outside ------------------------------------------------------------------------------------

    def start(self, name: str, given: dict[str, Any]) -> Execution:
        """Raises `ExecutionAlreadyExists`."""
        if name in self.executions:
            raise ExecutionAlreadyExists(name)
        execution = self.executions[name] = Execution(name, given)
        self._enter(execution, self.definition.start_at, given)
        return execution

    def stop(self, name: str) -> None:
        """As from the console; one that is over stays as it ended."""
        execution = self.executions[name]
        if not execution.over:
            self._end(execution, Status.ABORTED, None)

    def redrive(self, name: str) -> None:
        """Go on at the state that failed or was stopped, with its input and fresh retries."""
        execution = self.executions[name]
        if execution.status not in {Status.FAILED, Status.ABORTED}:
            return
        execution.status, execution.error = Status.RUNNING, None
        execution.redrives += 1
        execution.retries = {}
        self._soon(execution, partial(self._run, execution))

    def succeed_task(self, token: str) -> bool:
        """SendTaskSuccess with an empty output; False for a token that nobody waits for any more."""
        if (execution := self._waiting(token)) is None:
            return False
        self._result(execution, {})
        return True

    def heartbeat(self, token: str) -> bool:
        """SendTaskHeartbeat; False for a token that nobody waits for any more."""
        if (execution := self._waiting(token)) is None:
            return False
        self._arm_heartbeat(execution, token)
        return True

    def _waiting(self, token: str) -> Execution | None:
        execution, generation, _ = self._waits.get(token, (None, 0, 0.0))
        if execution is None or execution.over or execution.generation != generation:
            return None
        return execution

    # -- moving ------------------------------------------------------------------------------------------

    def _enter(self, execution: Execution, name: str, given: Any, *, how: str = "next") -> None:
        if execution.state:
            self.ways.add((execution.state, name, how))
        execution.state, execution.state_input = name, given
        execution.path.append(name)
        execution.retries = {}
        self._soon(execution, partial(self._run, execution))

    def _soon(self, execution: Execution, action: Callable[[], object], *, seconds: float = 0.0) -> None:
        """Unless the execution moves on before."""
        self._leave(execution)
        generation = execution.generation
        self._when(execution, generation, seconds, action)

    def _when(
        self, execution: Execution, generation: int, seconds: float, action: Callable[[], object]
    ) -> Timer:
        def act() -> None:
            if execution.generation == generation and not execution.over:
                action()

        timer = self.scheduler.after(seconds, act)
        execution._timers.append(timer)
        return timer

    def _leave(self, execution: Execution) -> None:
        for timer in execution._timers:
            timer.cancel()
        execution._timers.clear()
        execution.generation += 1
        if execution.token is not None:
            execution.waits[-1].ended = self.scheduler.now
            execution.token = None

    def _run(self, execution: Execution) -> None:
        state = self.definition.states[execution.state]
        given = execution.state_input
        try:
            match state.kind:
                case "Task":
                    self._start_task(execution, state)
                case "Choice":
                    to, how = _chosen(state, given)
                    self._enter(execution, to, given, how=how)
                case "Wait":
                    seconds = _seconds(given, state.seconds_path, least=0)
                    move = partial(self._enter, execution, state.next, given)
                    self._soon(execution, move, seconds=seconds)
                case "Pass":
                    self._enter(execution, state.next, _placed(state.result_path, given, state.result))
                case "Succeed":
                    self._end(execution, Status.SUCCEEDED, None)
                case _:
                    self._end(execution, Status.FAILED, TaskError(state.error, state.cause))
        except _RuntimeFault as fault:
            self._end(execution, Status.FAILED, TaskError(RUNTIME, str(fault)))

    def _end(self, execution: Execution, status: Status, error: TaskError | None) -> None:
        self._leave(execution)
        execution.status, execution.error = status, error
        self.ended(execution)

    # -- tasks -------------------------------------------------------------------------------------------

    def _start_task(self, execution: Execution, state: State) -> None:
        self._leave(execution)
        generation, given = execution.generation, execution.state_input
        self._tokens += 1
        token = f"token-{self._tokens}"
        payload = _filled(state.payload or {}, given, token)
        if state.timeout_path is not None:
            timeout = _seconds(given, state.timeout_path, least=1)
            self._when(execution, generation, timeout, partial(self._fail, execution, TaskError(TIMEOUT)))
            if state.heartbeat_path is not None:
                self._watch(execution, state, token, timeout)
        if state.waits_for_token:
            execution.token = token
            execution.waits.append(Wait(token, given))
            self._waits.setdefault(token, (execution, generation, 0.0))

        def done(answer: Answered | TaskError) -> None:
            if execution.generation != generation or execution.over:
                return
            if isinstance(answer, TaskError):
                self._fail(execution, answer)
            elif not state.waits_for_token:
                self._result(execution, {"Payload": answer.payload, "StatusCode": 200})

        self.invoke(state.function, payload, done)

    def _watch(self, execution: Execution, state: State, token: str, timeout: float) -> None:
        assert state.heartbeat_path is not None
        seconds = _seconds(execution.state_input, state.heartbeat_path, least=1)
        if seconds >= timeout:
            raise _RuntimeFault("HeartbeatSeconds must be below TimeoutSeconds")
        self._waits[token] = (execution, execution.generation, seconds)
        self._arm_heartbeat(execution, token)

    def _arm_heartbeat(self, execution: Execution, token: str) -> None:
        if token in self._beats:
            self._beats[token].cancel()
        _, generation, seconds = self._waits[token]
        if seconds:
            silent = partial(self._fail, execution, TaskError(HEARTBEAT))
            self._beats[token] = self._when(execution, generation, seconds, silent)

    def _result(self, execution: Execution, result: Any) -> None:
        state, given = self.definition.states[execution.state], execution.state_input
        try:
            selected = result if state.selector is None else _filled(state.selector, result, None)
            self._enter(execution, state.next, _placed(state.result_path, given, selected))
        except _RuntimeFault as fault:
            self._fail(execution, TaskError(RUNTIME, str(fault)))

    def _fail(self, execution: Execution, error: TaskError) -> None:
        state, given = self.definition.states[execution.state], execution.state_input
        for number, retrier in enumerate(state.retriers):
            if not _takes(retrier.errors, error):
                continue
            used = execution.retries.get(number, 0)
            if used < retrier.max_attempts:
                execution.retries[number] = used + 1
                delay = retrier.longest_delay(used)
                delay = self.random.uniform(0, delay) if retrier.full_jitter else delay
                self._soon(execution, partial(self._run, execution), seconds=delay)
                return
            break
        for catcher in state.catchers:
            if _takes(catcher.errors, error):
                told = {"Error": error.name, "Cause": error.cause}
                self._enter(execution, catcher.next, _placed(catcher.result_path, given, told), how="caught")
                return
        self._end(execution, Status.FAILED, error)


class _RuntimeFault(Exception):
    """Becomes States.Runtime."""


def _takes(errors: frozenset[str], error: TaskError) -> bool:
    return error.name in errors or (ALL in errors and error.name not in NEVER_CAUGHT)


def _read(path: str, given: Any) -> Any:
    found = given
    for name in path.split(".")[1:]:
        if not isinstance(found, dict) or name not in found:
            raise _RuntimeFault(f"{path} is not in the input")
        found = found[name]
    return found


def _seconds(given: Any, path: str, *, least: int) -> float:
    found = _read(path, given)
    if not isinstance(found, int) or isinstance(found, bool) or found < least:
        raise _RuntimeFault(f"{path} is {found!r}, not an integer of at least {least}")
    return float(found)


def _filled(template: Mapping[str, Any], given: Any, token: str | None) -> dict[str, Any]:
    filled: dict[str, Any] = {}
    for key, value in template.items():
        if key.endswith(".$"):
            filled[key[:-2]] = token if value == TOKEN_PATH else _read(value, given)
        else:
            filled[key] = value
    return filled


def _placed(path: str, given: Any, result: Any) -> Any:
    if path == KEEP_INPUT:
        return given
    if path == "$":
        return result
    if not isinstance(given, dict):
        raise _RuntimeFault(f"{path} can't be placed in {given!r}")
    return {**given, path.removeprefix("$."): result}


def _chosen(state: State, given: Any) -> tuple[str, str]:
    """The next state, and how it was chosen."""
    for variable, wanted, to in state.choices:
        if _read(variable, given) == wanted:
            return to, f"{variable} is {wanted}"
    if not state.default:
        raise _RuntimeFault(f"{state.name} has no choice for its input")
    return state.default, "default"
