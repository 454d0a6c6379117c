"""An AWS account to hold against its documentation: the embedded one.

The tests speak boto3 to an endpoint and know nothing of moto. Given an `aws` fixture with the same few
members, they run against a real account.
"""

from __future__ import annotations

import inspect
import io
import json
import sys
import textwrap
import zipfile
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from tensorant_local.aws import running
from tensorant_local.aws.images import SeededAccount, seed_account
from tensorant_local.aws.running import Delays, Invocation
from tensorant_local.aws.server import EmbeddedAws
from tests.contract.conformance.patience import TIME_SCALE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _refuse_strangers(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect" and isinstance(arguments[1], tuple) and running.is_running():
        assert arguments[1][0] in {"127.0.0.1", "::1", "localhost"}, f"something dials {arguments[1]}"


sys.addaudithook(_refuse_strangers)


class Functions:
    """Runs deployed functions in this process, as Lambda answers: an exception by its class's name."""

    def __init__(self) -> None:
        self.calls: dict[str, list[Any]] = {}
        self.handlers: dict[str, Callable[[Any], Any]] = {}
        self._lock = Lock()

    def __call__(self, function_name: str, payload: bytes) -> Invocation:
        event = json.loads(payload)
        with self._lock:
            self.calls[function_name].append(event)
        try:
            return Invocation(json.dumps(self.handlers[function_name](event)).encode())
        except Exception as error:  # noqa: BLE001 - whatever a function raises
            report = {"errorType": type(error).__name__, "errorMessage": str(error), "stackTrace": []}
            return Invocation(json.dumps(report).encode(), error="Unhandled")


class Machines:
    """Computers that only take notes."""

    def __init__(self) -> None:
        self.notes: list[tuple[object, ...]] = []

    def boot(self, instance_id: str, user_data: bytes, first: bool) -> None:  # noqa: FBT001 - see MachineHost
        self.notes.append(("boot", instance_id, user_data, first))

    def power_off(self, instance_id: str) -> None:
        self.notes.append(("power off", instance_id))

    def destroy(self, instance_id: str) -> None:
        self.notes.append(("destroy", instance_id))

    def of(self, instance_id: str) -> list[tuple[object, ...]]:
        return [(note[0], *note[2:]) for note in self.notes if note[1] == instance_id]


@pytest.fixture(scope="module")
def functions() -> Functions:
    return Functions()


@pytest.fixture(scope="module")
def machines() -> Machines:
    return Machines()


@pytest.fixture(scope="module")
def aws(functions: Functions, machines: Machines) -> Iterator[EmbeddedAws]:
    delays = Delays(pending=0.1, stopping=0.1, shutting_down=0.1)
    with EmbeddedAws(
        invoker=functions,
        machines=machines,
        delays=delays,
        time_scale=TIME_SCALE,
        invocation_retry_seconds=0.02,
    ) as embedded:
        yield embedded


@pytest.fixture(scope="module")
def account(aws: EmbeddedAws) -> SeededAccount:
    return seed_account(aws)


@pytest.fixture(scope="module")
def role_arn(aws: EmbeddedAws) -> str:
    trust = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": "*"}],
    }
    role = aws.client("iam").create_role(RoleName="conformance", AssumeRolePolicyDocument=json.dumps(trust))
    return str(role["Role"]["Arn"])


@pytest.fixture(scope="module")
def deploy(aws: EmbeddedAws, functions: Functions, role_arn: str) -> Callable[[Callable[[Any], Any]], str]:
    """Makes a Lambda function of a Python function; answers its ARN."""
    client = aws.client("lambda")

    def deployed(handler: Callable[[Any], Any]) -> str:
        name = f"{handler.__name__}-{uuid4().hex[:8]}"
        functions.handlers[name], functions.calls[name] = handler, []
        answer = client.create_function(
            FunctionName=name,
            Runtime="python3.13",
            Role=role_arn,
            Handler=f"index.{handler.__name__}",
            Code={"ZipFile": _zipped(textwrap.dedent(inspect.getsource(handler)))},
        )
        return str(answer["FunctionArn"])

    return deployed


@pytest.fixture
def calls(functions: Functions) -> Callable[[str], list[Any]]:
    """What a function was called with, by its ARN."""
    return lambda arn: functions.calls[arn.split(":")[-1]]


def _zipped(source: str) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("index.py", source)
    return archive.getvalue()
