"""The Lambda host keeps Lambda's promises: isolation, warmth, time limits, and errors in Lambda's words."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tensorant_local.aws.running import Invocation
from tensorant_local.lambda_host import MAXIMUM_PROCESSES, Credentials, FunctionDefinition, LambdaHost

FUNCTIONS = Path(__file__).parents[1] / "fixtures" / "functions"


def definition(
    handler: str, *, name: str = "", timeout_seconds: float = 5, **environment: str
) -> FunctionDefinition:
    name = name or handler.rpartition(".")[2]
    return FunctionDefinition(
        name=name,
        arn=f"arn:aws:lambda:us-east-1:123456789012:function:{name}",
        handler=handler,
        runtime="python3.13",
        code=FUNCTIONS,
        environment=environment,
        timeout_seconds=timeout_seconds,
        memory_megabytes=512,
        credentials=Credentials("ASIAOWN", "secret", "session"),
        region="us-east-1",
        endpoint_url="http://127.0.0.1:1",
    )


@pytest.fixture
def host(tmp_path: Path) -> Iterator[LambdaHost]:
    with LambdaHost(logs=tmp_path / "logs") as host:
        yield host


def call(host: LambdaHost, name: str, **event: Any) -> Any:
    invocation = host(name, json.dumps(event).encode())
    assert invocation.error is None, invocation.payload
    return json.loads(invocation.payload)


def error_of(invocation: Invocation) -> tuple[str, str]:
    assert invocation.error == "Unhandled"
    report = json.loads(invocation.payload)
    return report["errorType"], report["errorMessage"]


def test_a_function_gets_its_event_and_answers(host: LambdaHost) -> None:
    host.register(definition("sample.echo"))

    assert call(host, "echo", run="run_1", steps=[1, 2]) == {"run": "run_1", "steps": [1, 2]}


def test_a_function_sees_its_own_environment_and_nothing_of_ours(
    host: LambdaHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "somebody")
    monkeypatch.setenv("HOME", "/home/somebody")
    host.register(definition("sample.describe", TABLE_NAME="runs"))

    seen = call(host, "describe")["environment"]

    assert seen["TABLE_NAME"] == "runs"
    assert seen["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1"
    assert seen["AWS_REGION"] == seen["AWS_DEFAULT_REGION"] == "us-east-1"
    assert (seen["AWS_ACCESS_KEY_ID"], seen["AWS_SESSION_TOKEN"]) == ("ASIAOWN", "session")
    assert seen["AWS_LAMBDA_FUNCTION_NAME"] == "describe"
    assert seen["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "512"
    assert seen["AWS_EXECUTION_ENV"] == "AWS_Lambda_python3.13"
    assert seen["LAMBDA_TASK_ROOT"] == str(FUNCTIONS)
    assert {"AWS_PROFILE", "HOME", "VIRTUAL_ENV"}.isdisjoint(seen)


def test_a_function_knows_its_request_and_its_time(host: LambdaHost) -> None:
    host.register(definition("sample.describe", timeout_seconds=5))

    first, second = call(host, "describe"), call(host, "describe")

    assert first["arn"] == "arn:aws:lambda:us-east-1:123456789012:function:describe"
    assert first["request_id"] != second["request_id"]
    assert 0 < second["remaining_ms"] <= 5000


def test_a_process_stays_warm(host: LambdaHost) -> None:
    host.register(definition("sample.describe"))

    assert call(host, "describe")["process"] == call(host, "describe")["process"]


def test_a_warm_call_takes_milliseconds(host: LambdaHost) -> None:
    host.register(definition("sample.echo"))
    call(host, "echo")

    durations = []
    for _ in range(20):
        started = time.perf_counter()
        call(host, "echo")
        durations.append(time.perf_counter() - started)

    assert min(durations) < 0.02  # 1 to 2 ms; 40 ms and more with Nagle's algorithm


def test_requests_at_the_same_time_get_processes_of_their_own_up_to_the_maximum(
    host: LambdaHost, tmp_path: Path
) -> None:
    host.register(definition("sample.gather"))
    requests = MAXIMUM_PROCESSES + 2
    (tmp_path / "together").mkdir()
    together = {"folder": str(tmp_path / "together"), "count": MAXIMUM_PROCESSES}

    with ThreadPoolExecutor(requests) as pool:
        processes = list(pool.map(lambda _: call(host, "gather", **together), range(requests)))

    assert len(set(processes)) == MAXIMUM_PROCESSES


def test_a_function_that_takes_too_long_is_killed_and_the_next_call_works(host: LambdaHost) -> None:
    host.register(definition("sample.sleep", timeout_seconds=1))
    call(host, "sleep", seconds=0)

    started = time.monotonic()
    kind, message = error_of(host("sleep", b'{"seconds": 20}'))

    assert kind == "Sandbox.Timedout"
    assert message.endswith("Error: Task timed out after 1.00 seconds")
    assert 1 <= time.monotonic() - started < 10
    process = call(host, "sleep", seconds=0)
    assert process


def test_a_killed_function_leaves_no_process(host: LambdaHost) -> None:
    host.register(definition("sample.sleep", timeout_seconds=1))
    process = call(host, "sleep", seconds=0)

    host("sleep", b'{"seconds": 20}')

    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.parametrize(
    ("code", "message"),
    [(3, "Runtime exited with error: exit status 3"), (0, "Runtime exited without providing a reason")],
)
def test_a_function_that_exits_is_an_exit_error_and_the_next_call_works(
    host: LambdaHost, code: int, message: str
) -> None:
    host.register(definition("sample.crash"))

    for _ in range(2):
        kind, said = error_of(host("crash", json.dumps({"code": code}).encode()))
        assert kind == "Runtime.ExitError"
        assert said.endswith(f"Error: {message}")


def test_an_exception_is_reported_with_its_type_message_and_trace(host: LambdaHost) -> None:
    host.register(definition("sample.fail"))

    invocation = host("fail", b"{}")

    assert error_of(invocation) == ("LookupError", "no such run")
    assert 'raise LookupError("no such run")' in "".join(json.loads(invocation.payload)["stackTrace"])


def test_a_failing_import_is_reported(host: LambdaHost) -> None:
    host.register(definition("broken.handler"))

    for _ in range(2):
        assert error_of(host("handler", b"{}")) == (
            "Runtime.ImportModuleError",
            "Unable to import module 'broken': No module named 'no_such_package'",
        )


def test_an_answer_over_six_megabytes_is_an_error(host: LambdaHost) -> None:
    host.register(definition("sample.swell"))

    assert len(call(host, "swell", bytes=6_291_554)) == 6_291_554
    kind, _ = error_of(host("swell", b'{"bytes": 6291555}'))
    assert kind == "Function.ResponseSizeTooLarge"


def test_output_goes_to_the_functions_own_log(host: LambdaHost, tmp_path: Path) -> None:
    host.register(definition("sample.speak"))

    call(host, "speak", words="hello from a function")

    log = (tmp_path / "logs" / "speak.log").read_text()
    assert "hello from a function" in log
    assert "and an error" in log


def test_a_name_that_lambda_reserves_is_refused() -> None:
    with pytest.raises(ValueError, match="AWS_REGION"):
        definition("sample.echo", AWS_REGION="eu-west-1")


def test_an_unknown_function_is_an_error_of_the_caller(host: LambdaHost) -> None:
    with pytest.raises(KeyError):
        host("nobody", b"{}")


def test_closing_ends_processes_threads_and_requests_under_way(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    host = LambdaHost(logs=tmp_path)
    host.register(definition("sample.sleep"))
    process = call(host, "sleep", seconds=0)

    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(host, "sleep", b'{"seconds": 20}')
        time.sleep(0.2)
        host.close()
        kind, message = error_of(under_way.result(timeout=5))

    assert (kind, message.rpartition("Error: ")[2]) == (
        "Runtime.ExitError",
        "Runtime exited with error: signal: killed",
    )
    assert set(threading.enumerate()) == before
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
