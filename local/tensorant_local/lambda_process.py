"""One process of one function, behind a runtime API of its own.

The interface is Lambda's: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html. The process is
awslambdaric, the runtime client that also runs in Lambda; it asks for work and posts what came of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, cast

from tensorant_local.aws.running import Invocation
from tensorant_local.loopback import LoopbackHandler, LoopbackServer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tensorant_local.lambda_host import FunctionDefinition

INIT_SECONDS = 10
"""How long a function may import before its own time-out begins to run, as in Lambda."""

MAXIMUM_RESPONSE_BYTES = 6_291_556
"""Lambda's limit for a synchronous response (its documentation rounds it to 6 MB)."""

_RUNTIME = "/2018-06-01/runtime"


@dataclass(frozen=True)
class _Request:
    payload: bytes
    id: str = field(default_factory=lambda: str(uuid.uuid4()))


@dataclass(frozen=True)
class _Taken:
    """The process is ready and holds the request: its time runs."""


@dataclass(frozen=True)
class _Answered:
    invocation: Invocation


@dataclass(frozen=True)
class _Exited:
    code: int


_News = _Taken | _Answered | _Exited


class FunctionProcess:
    """Started at once; `invoke` one request at a time; `close` when done or no longer `alive`."""

    def __init__(self, function: FunctionDefinition, environment: Mapping[str, str], log: Path) -> None:
        self.function = function
        self.requests: SimpleQueue[_Request | None] = SimpleQueue()
        self.news: SimpleQueue[_News] = SimpleQueue()
        self._usable = True
        self._api = _RuntimeApi(self)
        self._api.start(f"runtime-api-{function.name}")
        self._process = _started(function, {**environment, "AWS_LAMBDA_RUNTIME_API": self._api.address}, log)
        self._watch = Thread(target=self._watched, name=f"watch-{function.name}")
        self._watch.start()

    @property
    def alive(self) -> bool:
        return self._usable and self._process.poll() is None

    def invoke(self, payload: bytes) -> Invocation:
        """The function's answer, or its error in Lambda's words; a process that erred fatally is killed."""
        request = _Request(payload)
        self.requests.put(request)
        timeout = self.function.timeout_seconds
        try:
            news = self.news.get(timeout=INIT_SECONDS + timeout)
            if isinstance(news, _Taken):
                news = self.news.get(timeout=timeout)
        except Empty:
            self._kill()
            return _failed(request, "Sandbox.Timedout", f"Task timed out after {timeout:.2f} seconds")
        match news:
            case _Answered(invocation):
                return invocation
            case _Exited(code):
                self._usable = False
                return _failed(request, "Runtime.ExitError", _exit_message(code))
            case _Taken():
                raise AssertionError("a process took one request twice")

    def close(self) -> None:
        """End the process and everything it started, then the threads that served it."""
        self._kill()
        self._watch.join()
        self.requests.put(None)
        self._api.stop()

    def initialization_failed(self, report: bytes) -> None:
        self._usable = False
        self.news.put(_Answered(Invocation(payload=report, error="Unhandled")))

    def _kill(self) -> None:
        self._usable = False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _watched(self) -> None:
        self.news.put(_Exited(self._process.wait()))


def _started(function: FunctionDefinition, environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "awslambdaric", function.handler],
            cwd=function.code,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


class _RuntimeApi(LoopbackServer):
    def __init__(self, process: FunctionProcess) -> None:
        self.process = process
        super().__init__(_RuntimeApiHandler)


class _RuntimeApiHandler(LoopbackHandler):
    @property
    def _process(self) -> FunctionProcess:
        return cast("_RuntimeApi", self.server).process

    def serve(self) -> None:
        body = self.body()
        match [self.command, *self.path.removeprefix(_RUNTIME).split("/")[1:]]:
            case ["GET", "invocation", "next"]:
                self._hand_out()
                return
            case ["POST", "invocation", _, "response"] if len(body) > MAXIMUM_RESPONSE_BYTES:
                self._answer(_too_large(), error="Unhandled")
            case ["POST", "invocation", _, "response"]:
                self._answer(body, error=None)
            case ["POST", "invocation", _, "error"]:
                self._answer(body, error="Unhandled")
            case ["POST", "init", "error"]:
                self._process.initialization_failed(body)
            case _:
                self.reply(404)
                return
        self.reply(202)

    def _hand_out(self) -> None:
        """Wait for a request and hand it to the process; hang up when none will come."""
        request = self._process.requests.get()
        if request is None:
            self.close_connection = True
            return
        self._process.news.put(_Taken())
        function = self._process.function
        deadline = time.time() + function.timeout_seconds
        headers = {
            "Lambda-Runtime-Aws-Request-Id": request.id,
            "Lambda-Runtime-Deadline-Ms": str(int(deadline * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": function.arn,
            "Lambda-Runtime-Trace-Id": f"Root=1-{int(time.time()):08x}-{uuid.uuid4().hex[:24]};Sampled=0",
            "Content-Type": "application/json",
        }
        self.reply(200, request.payload, headers)

    def _answer(self, payload: bytes, *, error: str | None) -> None:
        self._process.news.put(_Answered(Invocation(payload=payload, error=error)))


def _failed(request: _Request, error_type: str, message: str) -> Invocation:
    report = {"errorType": error_type, "errorMessage": f"RequestId: {request.id} Error: {message}"}
    return Invocation(payload=json.dumps(report).encode(), error="Unhandled")


def _exit_message(code: int) -> str:
    if code == 0:
        return "Runtime exited without providing a reason"
    if code < 0:
        return f"Runtime exited with error: signal: {(signal.strsignal(-code) or str(-code)).lower()}"
    return f"Runtime exited with error: exit status {code}"


def _too_large() -> bytes:
    message = f"Response payload size exceeded maximum allowed payload size ({MAXIMUM_RESPONSE_BYTES} bytes)."
    return json.dumps({"errorType": "Function.ResponseSizeTooLarge", "errorMessage": message}).encode()
