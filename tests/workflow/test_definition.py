"""The state machine's definition, read as a file: what can be known without executing it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from statelint.linter import Linter

from tensorant.domain import errors
from tensorant.domain.runs import Operation
from tensorant.domain.steps import Next, Step

DEFINITION = Path(__file__).parents[2] / "statemachines" / "training_run.asl.json"
TEXT = DEFINITION.read_text()
MACHINE = json.loads(TEXT)
STATES: dict[str, dict[str, Any]] = MACHINE["States"]
TASKS = {name: state for name, state in STATES.items() if state["Type"] == "Task"}
STEP_FIELDS = {field.name for field in fields(Step)}
FUNCTIONS = {
    "ValidateRun",
    "LaunchMachine",
    "AwaitSignal",
    "ObserveMachine",
    "VerifyAdapter",
    "ConvergeMachine",
}
INVOKE = "arn:aws:states:::lambda:invoke"
NOT_CAUGHT = {"VerifyRecovered", "ReleaseMachine", "ConfirmReleased", "StopMachine", "ConfirmStopped"}
"""A redrive resumes in them: stopping and releasing have nowhere else to go."""


def strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from strings(each)
        case list():
            for each in value:
                yield from strings(each)


def successors(state: dict[str, Any]) -> set[str]:
    catches = [each["Next"] for each in state.get("Catch", [])]
    choices = [each["Next"] for each in state.get("Choices", [])]
    return {*catches, *choices, *(state[key] for key in ("Next", "Default") if key in state)}


def choices(name: str, variable: str) -> dict[str, str]:
    return {
        each["StringEquals"]: each["Next"] for each in STATES[name]["Choices"] if each["Variable"] == variable
    }


def test_the_linter_has_nothing_to_say() -> None:
    assert Linter.validate(MACHINE) == []


def test_it_is_jsonpath_throughout() -> None:
    assert MACHINE.get("QueryLanguage", "JSONPath") == "JSONPath"
    assert "{%" not in TEXT


# -- placeholders ------------------------------------------------------------------------------------------


def test_every_placeholder_is_a_whole_string_and_names_a_function() -> None:
    found = {each for each in strings(MACHINE) if "${" in each}

    assert found == {f"${{{name}Function}}" for name in FUNCTIONS}
    assert all(re.fullmatch(r"\$\{[A-Za-z]+\}", each) for each in found)


def test_every_task_invokes_a_function() -> None:
    for name, task in TASKS.items():
        waits = ".waitForTaskToken" if name == "AwaitSignal" else ""
        assert task["Resource"] == INVOKE + waits
        assert task["Parameters"].keys() == {"FunctionName", "Payload"}


# -- shapes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(TASKS.keys() - {"AwaitSignal"}))
def test_a_tasks_answer_is_the_whole_step(name: str) -> None:
    assert TASKS[name]["ResultSelector"] == {f"{each}.$": f"$.Payload.{each}" for each in STEP_FIELDS}
    assert "ResultPath" not in TASKS[name], "the answer replaces the state's whole input"


@pytest.mark.parametrize("name", sorted(TASKS))
def test_a_payload_has_ids_and_words_never_whole_objects(name: str) -> None:
    payload = TASKS[name]["Parameters"]["Payload"]
    known = STEP_FIELDS | {"goal", "confirm", "task_token"}

    assert {"run_id.$", "operation.$", "number.$"} <= payload.keys()
    assert {each.removesuffix(".$") for each in payload} <= known
    for key, value in payload.items():
        if key.endswith(".$") and key != "task_token.$":
            assert value == f"$.{key.removesuffix('.$')}"


@pytest.mark.parametrize(
    ("name", "goal", "confirm"),
    [
        ("ReleaseMachine", "gone", False),
        ("ConfirmReleased", "gone", True),
        ("StopMachine", "stopped", False),
        ("ConfirmStopped", "stopped", True),
    ],
)
def test_a_convergence_names_its_goal(*, name: str, goal: str, confirm: bool) -> None:
    payload = TASKS[name]["Parameters"]["Payload"]

    assert TASKS[name]["Parameters"]["FunctionName"] == "${ConvergeMachineFunction}"
    assert (payload["goal"], payload["confirm"]) == (goal, confirm)


def test_whatever_ends_in_a_stop_may_lack_an_attempt() -> None:
    # a step that failed has not said which attempt it was; 0 stands for the run's latest
    assert TASKS["StopMachine"]["Parameters"]["Payload"]["attempt"] == 0


def test_the_wait_ends_by_heartbeat_or_time_out_and_changes_nothing() -> None:
    wait = TASKS["AwaitSignal"]

    assert wait["HeartbeatSecondsPath"] == "$.heartbeat_seconds"
    assert wait["TimeoutSecondsPath"] == "$.timeout_seconds"
    assert wait["ResultPath"] is None
    assert wait["Parameters"]["Payload"]["task_token.$"] == "$$.Task.Token"
    assert wait["Parameters"]["Payload"]["signal.$"] == "$.signal"
    silence = wait["Catch"][0]
    assert set(silence["ErrorEquals"]) == {"States.Timeout", "States.HeartbeatTimeout"}
    assert (silence["Next"], silence["ResultPath"]) == ("ObserveMachine", None)


# -- ways --------------------------------------------------------------------------------------------------


def test_every_state_is_reached() -> None:
    reached: set[str] = set()
    waiting = [MACHINE["StartAt"]]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += successors(STATES[name])

    assert reached == STATES.keys()


def test_an_end_is_reached_from_every_state() -> None:
    ending = {name for name, state in STATES.items() if state["Type"] in {"Succeed", "Fail"}}
    while more := {name for name, state in STATES.items() if successors(state) & ending} - ending:
        ending |= more

    assert ending == STATES.keys()


def test_every_operation_has_its_way_in() -> None:
    assert choices("Route", "$.operation") == {
        Operation.LAUNCH: "ValidateRun",
        Operation.VERIFY_RECOVERED: "VerifyRecovered",
        Operation.RELEASE: "ReleaseRequested",
    }


def test_every_next_step_has_its_way_on() -> None:
    assert choices("DecideNext", "$.next") == {
        Next.LAUNCH: "BeforeLaunch",
        Next.AWAIT: "AwaitSignal",
        Next.VERIFY: "VerifyAdapter",
        Next.RELEASE: "ReleaseMachine",
        Next.STOP: "StopMachine",
        Next.END: "Ended",
    }
    assert STATES["DecideNext"]["Default"] == "StopMachine"


def test_a_release_asked_for_without_an_attempt_is_given_the_latest() -> None:
    given = STATES["ReleaseRequested"]

    assert (given["Result"], given["ResultPath"], given["Next"]) == (0, "$.attempt", "ReleaseMachine")


def test_a_call_is_always_followed_by_its_confirmation() -> None:
    assert STATES["ReleaseMachine"]["Next"] == "ConfirmReleased"
    assert STATES["StopMachine"]["Next"] == "ConfirmStopped"


# -- errors ------------------------------------------------------------------------------------------------

OURS = {
    name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)
}
RESERVED = re.compile(r"(States|Lambda|Sandbox)\.[A-Za-z]+")
"""Sandbox.Timedout is how Lambda names a function that ran past its time-out."""


@pytest.mark.parametrize("name", sorted(TASKS))
def test_only_errors_that_exist_are_retried_or_caught(name: str) -> None:
    rules = [*TASKS[name].get("Retry", []), *TASKS[name].get("Catch", [])]
    named = {error for rule in rules for error in rule["ErrorEquals"]}

    unknown = {error for error in named if error not in OURS and not RESERVED.fullmatch(error)}
    assert unknown == set()


@pytest.mark.parametrize("name", sorted(TASKS))
def test_passing_trouble_is_retried_with_growing_pauses(name: str) -> None:
    passing = TASKS[name]["Retry"][-1]

    assert {each.__name__ for each in errors.DOUBTFUL} <= set(passing["ErrorEquals"])
    assert {"Lambda.TooManyRequestsException", "Conflict"} <= set(passing["ErrorEquals"])
    assert passing["BackoffRate"] > 1
    assert passing["MaxAttempts"] >= 3
    assert passing["JitterStrategy"] == "FULL"


@pytest.mark.parametrize("name", ["ConfirmReleased", "ConfirmStopped"])
def test_a_confirmation_is_waited_for_longer_than_an_asks_lease(name: str) -> None:
    rule = TASKS[name]["Retry"][0]
    pauses = [
        min(rule["IntervalSeconds"] * rule["BackoffRate"] ** number, rule["MaxDelaySeconds"])
        for number in range(rule["MaxAttempts"])
    ]

    assert rule["ErrorEquals"] == ["NotYetConfirmed"]
    assert sum(pauses) > 15 * 60


def test_a_verification_without_a_verdict_keeps_the_machine_and_is_tried_again() -> None:
    (caught,) = TASKS["VerifyAdapter"]["Catch"]

    assert (caught["ErrorEquals"], caught["Next"]) == (["States.ALL"], "AwaitSignal")
    assert caught["ResultPath"] is None, "the ids and the wait's limits must survive"
    # a verifier that runs into its time-out does so again: the next try comes after a wait, not at once
    assert "Sandbox.Timedout" not in TASKS["VerifyAdapter"]["Retry"][-1]["ErrorEquals"]


@pytest.mark.parametrize("name", sorted(TASKS.keys() - {"VerifyAdapter"}))
def test_whatever_else_happens_the_machine_is_stopped_and_kept(name: str) -> None:
    if name in NOT_CAUGHT:
        assert "Catch" not in TASKS[name]
        return
    last = TASKS[name]["Catch"][-1]
    assert (last["ErrorEquals"], last["Next"]) == (["States.ALL"], "StopMachine")
    assert last["ResultPath"] == "$.failure", "the ids must survive"
