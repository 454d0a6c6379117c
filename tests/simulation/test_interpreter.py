"""The interpreter against cases that a person worked out from the language's specification."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from tests.simulation.definition import INVOKE, INVOKE_AND_WAIT, Definition, Unsupported, load
from tests.simulation.interpreter import (
    Answered,
    ExecutionAlreadyExists,
    Interpreter,
    Status,
    TaskError,
)
from tests.simulation.scheduler import Scheduler
from tests.simulation.scripted import Script, Silence, Wake, Word, play
from tests.simulation.world import definition as real_definition

GIVEN = {"operation": "launch", "run_id": "run-1", "number": 1}


def task(**changes: Any) -> dict[str, Any]:
    call = {"FunctionName": "${WorkFunction}", "Payload": {"run_id.$": "$.run_id"}}
    return {"Type": "Task", "Resource": INVOKE, "Parameters": call, "Next": "Done", **changes}


def waiting(**changes: Any) -> dict[str, Any]:
    call = {"FunctionName": "${WaitFunction}", "Payload": {"task_token.$": "$$.Task.Token"}}
    wait = {
        "Type": "Task",
        "Resource": INVOKE_AND_WAIT,
        "Parameters": call,
        "HeartbeatSecondsPath": "$.heartbeat_seconds",
        "TimeoutSecondsPath": "$.timeout_seconds",
        "ResultPath": None,
        "Next": "Done",
    }
    return {**wait, **changes}


def machine(first: dict[str, Any], **more: dict[str, Any]) -> Definition:
    states = {"First": first, **more, "Done": {"Type": "Succeed"}}
    return load(json.dumps({"StartAt": "First", "States": states}))


def step(next_step: str, **changes: Any) -> dict[str, Any]:
    answer = {
        "attempt": 1,
        "next": next_step,
        "signal": 0,
        "delay_seconds": 0,
        "heartbeat_seconds": 300,
        "timeout_seconds": 901,
    }
    return {**GIVEN, **answer, **changes}


RETRY = {"ErrorEquals": ["Throttled"], "IntervalSeconds": 2, "BackoffRate": 2.0, "MaxAttempts": 3}
LOOK = {"ErrorEquals": ["States.Timeout", "States.HeartbeatTimeout"], "ResultPath": None, "Next": "Look"}
KEEP = {"ErrorEquals": ["States.ALL"], "ResultPath": "$.failure", "Next": "Keep"}
SUCCEED: dict[str, Any] = {"Type": "Succeed"}


# -- retries -----------------------------------------------------------------------------------------------


def test_a_retried_task_is_invoked_once_more_than_its_attempts_and_then_fails() -> None:
    script = Script([TaskError("Throttled")] * 4)

    execution = play(machine(task(Retry=[RETRY])), GIVEN, script)

    assert [at for at, _, _ in script.invoked] == [0, 2, 6, 14]  # pauses of 2, 4 and 8 seconds
    assert (execution.status, execution.error) == (Status.FAILED, TaskError("Throttled"))


def test_a_pause_grows_up_to_its_maximum() -> None:
    script = Script([TaskError("Throttled")] * 3 + [{}])

    play(machine(task(Retry=[{**RETRY, "MaxDelaySeconds": 3}])), GIVEN, script)

    assert [at for at, _, _ in script.invoked] == [0, 2, 5, 8]


def test_full_jitter_pauses_for_any_time_up_to_the_delay() -> None:
    script = Script([TaskError("Throttled")] * 3 + [{}])

    play(machine(task(Retry=[{**RETRY, "JitterStrategy": "FULL"}])), GIVEN, script)

    moments = [at for at, _, _ in script.invoked]
    pauses = [later - earlier for earlier, later in pairwise(moments)]
    assert all(0 <= pause <= longest for pause, longest in zip(pauses, [2, 4, 8], strict=True))


def test_each_retrier_counts_for_itself() -> None:
    twice = {"ErrorEquals": ["Conflict"], "IntervalSeconds": 1, "BackoffRate": 1, "MaxAttempts": 2}
    words = ["Throttled", "Conflict", "Throttled", "Conflict", "Throttled", "Conflict"]
    script = Script([TaskError(name) for name in words])

    execution = play(machine(task(Retry=[RETRY, twice])), GIVEN, script)

    assert execution.error == TaskError("Conflict")
    assert len(script.invoked) == 6


def test_retries_are_counted_anew_when_a_state_is_entered_again() -> None:
    again = {
        "Type": "Choice",
        "Choices": [{"Variable": "$.next", "StringEquals": "again", "Next": "First"}],
        "Default": "Done",
    }
    failing: list[Word] = [TaskError("Throttled")] * 3
    words: list[Word] = [*failing, {"next": "again", "run_id": "run-1"}, *failing, {"next": "on"}]
    chosen = task(Retry=[RETRY], Next="Again", ResultSelector={"next.$": "$.Payload.next", "run_id": "run-1"})

    execution = play(machine(chosen, Again=again), GIVEN, Script(words))

    assert execution.path == ["First", "Again", "First", "Again", "Done"]


# -- catches -----------------------------------------------------------------------------------------------


def test_the_first_catcher_that_names_the_error_takes_it() -> None:
    first = task(Catch=[{"ErrorEquals": ["Storage"], "Next": "Look"}, KEEP])

    stored = play(machine(first, Look=SUCCEED, Keep=SUCCEED), GIVEN, Script([TaskError("Storage")]))
    other = play(machine(first, Look=SUCCEED, Keep=SUCCEED), GIVEN, Script([TaskError("Quota", "no more")]))

    assert (stored.path, other.path) == (["First", "Look"], ["First", "Keep"])
    assert other.state_input == {**GIVEN, "failure": {"Error": "Quota", "Cause": "no more"}}


def test_what_a_retrier_gave_up_on_is_caught() -> None:
    script = Script([TaskError("Throttled")] * 4)

    execution = play(machine(task(Retry=[RETRY], Catch=[KEEP]), Keep=SUCCEED), GIVEN, script)

    assert execution.path == ["First", "Keep"]


def test_nothing_catches_a_runtime_error() -> None:
    selecting = task(ResultSelector={"next.$": "$.Payload.next"}, Catch=[KEEP])

    execution = play(machine(selecting, Keep=SUCCEED), GIVEN, Script([{"no": "next"}]))

    assert execution.error == TaskError("States.Runtime", "$.Payload.next is not in the input")


# -- waiting -----------------------------------------------------------------------------------------------

PATIENT = {"heartbeat_seconds": 300, "timeout_seconds": 900}


def test_a_wake_ends_a_wait_and_leaves_the_input_as_it_was() -> None:
    execution = play(machine(waiting()), PATIENT, Script([Wake(after=40)]))

    assert (execution.path, execution.state_input) == (["First", "Done"], PATIENT)


def test_silence_ends_a_wait_after_the_heartbeats_seconds() -> None:
    script = Script([Silence(), {}])
    looking = machine(waiting(Catch=[LOOK]), Look=task(Parameters=_plain()))

    execution = play(looking, PATIENT, script)

    assert execution.path == ["First", "Look", "Done"]
    assert script.invoked[1][0] == 300


def test_heartbeats_extend_a_wait_but_not_its_time_out() -> None:
    script = Script([Silence(beats=(200, 400, 600, 800)), {}])
    looking = machine(waiting(Catch=[LOOK]), Look=task(Parameters=_plain()))

    play(looking, PATIENT, script)

    assert script.invoked[1][0] == 900


@pytest.mark.parametrize(
    ("heartbeat", "timeout"), [(300, 300), (0, 900), (300, 0), (-1, 900), (300.0, 900), ("300", 900)]
)
def test_seconds_that_are_no_positive_integers_end_the_execution_for_good(
    heartbeat: object, timeout: object
) -> None:
    given = {"heartbeat_seconds": heartbeat, "timeout_seconds": timeout}

    execution = play(machine(waiting(Catch=[KEEP]), Keep=SUCCEED), given, Script([]))

    assert execution.error is not None
    assert (execution.path, execution.error.name) == (["First"], "States.Runtime")


def test_a_token_of_an_earlier_try_wakes_nobody() -> None:
    tokens: list[str] = []
    answers: Iterator[Answered | TaskError] = iter([TaskError("Throttled"), Answered(None)])

    def invoke(_function: str, payload: dict[str, Any], done: Callable[[Answered | TaskError], None]) -> None:
        tokens.append(payload["task_token"])
        done(next(answers))

    scheduler = Scheduler()
    interpreter = Interpreter(machine(waiting(Retry=[RETRY])), scheduler, invoke, Random(0))
    execution = interpreter.start("once", PATIENT)
    scheduler.run(10)

    assert len(set(tokens)) == 2
    assert not interpreter.succeed_task(tokens[0])
    assert not interpreter.heartbeat(tokens[0])
    assert not execution.over
    assert interpreter.succeed_task(tokens[1])
    scheduler.run(11)
    assert execution.status is Status.SUCCEEDED
    assert not interpreter.succeed_task(tokens[1])


def test_an_answer_that_comes_after_a_stop_changes_nothing() -> None:
    late: list[Callable[[Answered | TaskError], None]] = []
    scheduler = Scheduler()
    interpreter = Interpreter(machine(task()), scheduler, lambda _f, _p, done: late.append(done), Random(0))
    execution = interpreter.start("once", GIVEN)
    scheduler.run(1)

    interpreter.stop("once")
    late[0](Answered({}))
    scheduler.run(2)

    assert (execution.status, execution.path) == (Status.ABORTED, ["First"])


# -- executions --------------------------------------------------------------------------------------------


def test_a_name_is_used_once() -> None:
    interpreter = Interpreter(machine(task()), Scheduler(), lambda *_: None, Random(0))
    interpreter.start("run-1-launch-1", GIVEN)

    with pytest.raises(ExecutionAlreadyExists):
        interpreter.start("run-1-launch-1", GIVEN)


def test_a_redrive_resumes_at_the_failed_state_with_its_input_and_fresh_retries() -> None:
    words: Iterator[Answered | TaskError] = iter([Answered({}), *[TaskError("Throttled")] * 5, Answered({})])
    calls: list[str] = []

    def invoke(function: str, _payload: dict[str, Any], done: Callable[[Answered | TaskError], None]) -> None:
        calls.append(function)
        done(next(words))

    second = task(Parameters={"FunctionName": "${ReleaseFunction}", "Payload": {"run_id.$": "$.run_id"}})
    keeping = task(Next="Second", ResultPath=None)
    scheduler = Scheduler()
    interpreter = Interpreter(
        machine(keeping, Second={**second, "Retry": [RETRY]}), scheduler, invoke, Random(0)
    )
    execution = interpreter.start("once", GIVEN)
    scheduler.run(100)
    assert execution.over

    interpreter.redrive("once")
    scheduler.run(200)

    assert execution.status is Status.SUCCEEDED
    assert calls == ["Work", *["Release"] * 6]


def test_one_that_has_succeeded_is_not_redriven() -> None:
    scheduler = Scheduler()
    interpreter = Interpreter(machine(task()), scheduler, lambda _f, _p, done: done(Answered({})), Random(0))
    execution = interpreter.start("once", GIVEN)
    scheduler.run(1)

    interpreter.redrive("once")
    scheduler.run(2)

    assert (execution.status, execution.path) == (Status.SUCCEEDED, ["First", "Done"])


# -- the real definition -----------------------------------------------------------------------------------


def test_a_good_run_goes_through_the_real_definition() -> None:
    words: list[Word] = [
        step("launch"),
        step("await"),
        Wake(),
        step("verify"),
        step("release"),
        step("end"),
        TaskError("NotYetConfirmed"),
        step("end"),
    ]

    execution = play(real_definition(), GIVEN, Script(words))

    assert execution.path == [
        "Route",
        "ValidateRun",
        "DecideNext",
        "BeforeLaunch",
        "LaunchMachine",
        "DecideNext",
        "AwaitSignal",
        "ObserveMachine",
        "DecideNext",
        "VerifyAdapter",
        "DecideNext",
        "ReleaseMachine",
        "ConfirmReleased",
        "DecideNext",
        "Ended",
    ]


def test_an_unknown_operation_fails() -> None:
    execution = play(real_definition(), {**GIVEN, "operation": "dance"}, Script([]))

    assert (execution.path, execution.status) == (["Route", "UnknownOperation"], Status.FAILED)


def test_a_step_that_names_nothing_known_is_stopped_and_kept() -> None:
    words: list[Word] = [step("dance"), step("end"), step("end")]

    execution = play(real_definition(), GIVEN, Script(words))

    assert execution.path[2:] == ["DecideNext", "StopMachine", "ConfirmStopped", "DecideNext", "Ended"]


# -- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first",
    [
        {"Type": "Parallel", "Branches": [], "Next": "Done"},
        {"Type": "Map", "Next": "Done"},
        task(Resource="arn:aws:states:::dynamodb:putItem"),
        task(InputPath="$.run"),
        task(OutputPath="$.run"),
        task(TimeoutSeconds=30),
        task(Retry=[{"ErrorEquals": ["A"], "JitterStrategy": "HALF"}]),
        task(Parameters={"FunctionName": "arn:aws:lambda:x", "Payload": {}}),
        task(Parameters={"FunctionName": "${WorkFunction}", "Payload": {"all.$": "$['run_id']"}}),
        task(Parameters={"FunctionName": "${WorkFunction}", "Payload": {"token.$": "$$.Task.Token"}}),
        task(ResultPath="$.deep.down"),
        task(Next="Nowhere"),
        {"Type": "Wait", "Seconds": 3, "Next": "Done"},
        {"Type": "Choice", "Choices": [{"Variable": "$.a", "NumericEquals": 1, "Next": "Done"}]},
    ],
)
def test_what_is_not_known_is_refused_when_it_is_loaded(first: dict[str, Any]) -> None:
    with pytest.raises(Unsupported):
        machine(first)


def _plain() -> dict[str, Any]:
    return {"FunctionName": "${LookFunction}", "Payload": {}}
