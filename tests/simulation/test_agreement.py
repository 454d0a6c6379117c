"""The interpreter and the embedded cloud, given the same answers, enter the same states in the same order."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tensorant_local.aws.running import Invocation
from tensorant_local.aws.server import EmbeddedAws
from tests.simulation.definition import load
from tests.simulation.interpreter import TaskError
from tests.simulation.scripted import Script, Silence, Wake, Word, play

FILE = Path(__file__).parents[2] / "statemachines" / "training_run.asl.json"
TIME_SCALE = 0.02
WAKE_SECONDS = 0.3
GIVEN = {"operation": "launch", "run_id": "run-1", "number": 1}
FUNCTIONS = (
    "ValidateRun",
    "LaunchMachine",
    "AwaitSignal",
    "ObserveMachine",
    "VerifyAdapter",
    "ConvergeMachine",
)


def step(next_step: str, **changes: Any) -> dict[str, Any]:
    answer = {"attempt": 1, "next": next_step, "signal": 0, "delay_seconds": 0}
    return {**GIVEN, **answer, "heartbeat_seconds": 100, "timeout_seconds": 200, **changes}


RELEASE: list[Word] = [step("end"), step("end")]
CASES: dict[str, tuple[dict[str, Any], list[Word]]] = {
    "success": (
        GIVEN,
        [step("launch"), step("await"), Wake(), step("verify"), step("release"), *RELEASE],
    ),
    "refused before anything is rented": (GIVEN, [step("end")]),
    "the next candidate": (
        GIVEN,
        [step("launch"), step("launch"), step("launch", delay_seconds=1), step("end")],
    ),
    "stopped and kept": (
        GIVEN,
        [step("launch"), step("await"), Wake(), step("stop"), step("end"), step("end")],
    ),
    "woken twice": (
        GIVEN,
        [step("launch"), step("await"), Wake(), step("await"), Wake(), step("release"), *RELEASE],
    ),
    "silence is looked into": (
        GIVEN,
        [step("launch"), step("await", heartbeat_seconds=20), Silence(), step("release"), *RELEASE],
    ),
    "passing trouble is repeated": (GIVEN, [TaskError("Throttled"), TaskError("Conflict"), step("end")]),
    "what nobody expects is stopped and kept": (
        GIVEN,
        [step("launch"), TaskError("KeyError"), step("end"), step("end")],
    ),
    "not confirmed at first": (
        GIVEN,
        [step("launch"), step("release"), step("end"), TaskError("NotYetConfirmed"), step("end")],
    ),
    "a release that is refused fails": (GIVEN, [step("launch"), step("release"), TaskError("Permission")]),
    "a machine less, another candidate": (
        GIVEN,
        [step("launch"), step("release"), step("end"), step("launch"), step("end")],
    ),
    "an unknown step is stopped and kept": (GIVEN, [step("dance"), step("end"), step("end")]),
    "release alone": ({**GIVEN, "operation": "release"}, RELEASE),
    "a recovered archive that is unsound": ({**GIVEN, "operation": "verify_recovered"}, [step("end")]),
    "an unknown operation": ({**GIVEN, "operation": "dance"}, []),
}


class ScriptedFunctions:
    """The same words, said as Lambda would."""

    def __init__(self) -> None:
        self.words: Iterator[Word] = iter(())
        self.wake: Callable[[str], object] = lambda _: None

    def __call__(self, function_name: str, payload: bytes) -> Invocation:
        word = next(self.words)
        if isinstance(word, TaskError):
            report = {"errorType": word.name, "errorMessage": word.cause}
            return Invocation(json.dumps(report).encode(), error="Unhandled")
        if isinstance(word, Wake):
            Timer(WAKE_SECONDS, self.wake, [json.loads(payload)["task_token"]]).start()
        return Invocation(json.dumps(word if isinstance(word, dict) else None).encode())


@pytest.fixture(scope="module")
def functions() -> ScriptedFunctions:
    return ScriptedFunctions()


@pytest.fixture(scope="module")
def aws(functions: ScriptedFunctions) -> Iterator[EmbeddedAws]:
    with EmbeddedAws(invoker=functions, time_scale=TIME_SCALE) as aws:
        workflow = aws.client("stepfunctions")
        functions.wake = lambda token: workflow.send_task_success(taskToken=token, output="{}")
        yield aws


@pytest.fixture(scope="module")
def machine_arn(aws: EmbeddedAws) -> str:
    trust = {"Version": "2012-10-17", "Statement": []}
    role = aws.client("iam").create_role(RoleName="any", AssumeRolePolicyDocument=json.dumps(trust))
    definition = FILE.read_text()
    for name in FUNCTIONS:
        arn = aws.client("lambda").create_function(
            FunctionName=name,
            Runtime="python3.13",
            Role=role["Role"]["Arn"],
            Handler="index.handler",
            Code={"ZipFile": _zipped()},
        )["FunctionArn"]
        definition = definition.replace(f"${{{name}Function}}", arn)
    made = aws.client("stepfunctions").create_state_machine(
        name="training-run", definition=definition, roleArn=role["Role"]["Arn"]
    )
    return str(made["stateMachineArn"])


@pytest.mark.parametrize("case", CASES)
def test_both_enter_the_same_states(
    aws: EmbeddedAws, functions: ScriptedFunctions, machine_arn: str, case: str
) -> None:
    given, words = CASES[case]
    functions.words = iter(words)

    simulated = play(load(FILE.read_text()), given, Script(words))
    status, entered = _run(aws, machine_arn, given)

    assert entered == simulated.path
    assert status == simulated.status.name


def _run(aws: EmbeddedAws, machine_arn: str, given: dict[str, Any]) -> tuple[str, list[str]]:
    workflow = aws.client("stepfunctions")
    arn = workflow.start_execution(stateMachineArn=machine_arn, input=json.dumps(given))["executionArn"]
    give_up_at = time.monotonic() + 60
    while (status := workflow.describe_execution(executionArn=arn)["status"]) == "RUNNING":
        assert time.monotonic() < give_up_at, "it took too long"
        time.sleep(0.05)
    history = workflow.get_execution_history(executionArn=arn, maxResults=1000)["events"]
    return str(status), [
        event["stateEnteredEventDetails"]["name"] for event in history if "stateEnteredEventDetails" in event
    ]


def _zipped() -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("index.py", "def handler(event, context): ...\n")
    return archive.getvalue()
