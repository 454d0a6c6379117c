"""Runs the deployed functions: processes started at first need, kept warm, each with its own environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from threading import Condition
from typing import TYPE_CHECKING, Self

from tensorant_local.aws.running import Invocation
from tensorant_local.lambda_process import FunctionProcess

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

MAXIMUM_PROCESSES = 3
"""Of one function at a time; further requests wait their turn, as under a reserved concurrency."""

RESERVED_PREFIXES = ("AWS_LAMBDA_", "LAMBDA_")
RESERVED = frozenset(
    {
        "_HANDLER",
        "_X_AMZN_TRACE_ID",
        "AWS_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_DEFAULT_REGION",
        "AWS_EXECUTION_ENV",
        "AWS_REGION",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "TZ",
    }
)
"""Lambda refuses a function that sets these.

Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
"""


@dataclass(frozen=True)
class Credentials:
    """What a function signs with: the session of its own role."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)


@dataclass(frozen=True)
class FunctionDefinition:
    """A function as the template describes it, with its references resolved."""

    name: str
    arn: str
    handler: str
    runtime: str
    code: Path
    environment: Mapping[str, str]
    timeout_seconds: float
    memory_megabytes: int
    credentials: Credentials
    region: str
    endpoint_url: str
    """Where the function finds AWS."""

    def __post_init__(self) -> None:
        """Refuse what Lambda refuses, so that it is not found out at the first deployment."""
        for name in self.environment:
            if name in RESERVED or name.startswith(RESERVED_PREFIXES):
                raise ValueError(f"{self.name} sets {name}, which Lambda reserves")


_HOST_CLOSED = b'{"errorType": "Runtime.ExitError", "errorMessage": "Error: the host of functions is closed"}'


class LambdaHost:
    """Call it with a function's name and a payload; it answers when the function has.

    What functions print goes to `<logs>/<function>.log`. `surroundings` are variables that every function sees,
    which no template can know: where the world outside is found.
    """

    def __init__(self, *, logs: Path) -> None:
        self.surroundings: dict[str, str] = {}
        self._logs = logs
        self._pools: dict[str, _Pool] = {}
        logs.mkdir(parents=True, exist_ok=True)

    def register(self, function: FunctionDefinition) -> None:
        """Make a function known; its log begins anew."""
        log = self._logs / f"{function.name}.log"
        log.write_bytes(b"")
        self._pools[function.name] = _Pool(function, {**self.surroundings, **_environment(function)}, log)

    def __call__(self, function_name: str, payload: bytes) -> Invocation:
        """The function's answer or error. Raises KeyError for a function nobody registered."""
        return self._pools[function_name].invoke(payload)

    def close(self) -> None:
        """End every process; requests under way, and later ones, answer Runtime.ExitError."""
        for pool in self._pools.values():
            pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Pool:
    """The processes of one function. One request at a time each, so their number bounds the concurrency."""

    def __init__(self, function: FunctionDefinition, environment: Mapping[str, str], log: Path) -> None:
        self._function = function
        self._environment = environment
        self._log = log
        self._changed = Condition()
        self._idle: list[FunctionProcess] = []
        self._busy: set[FunctionProcess] = set()
        self._closed = False

    def invoke(self, payload: bytes) -> Invocation:
        process = self._taken()
        if process is None:
            return Invocation(_HOST_CLOSED, error="Unhandled")
        try:
            return process.invoke(payload)
        finally:
            self._given_back(process)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            processes = [*self._idle, *self._busy]
            self._changed.notify_all()
        for process in processes:
            process.close()

    def _taken(self) -> FunctionProcess | None:
        """A warm process, else a new one; None once the host is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._busy) < MAXIMUM_PROCESSES)
            if self._closed:
                return None
            process = self._warm() or FunctionProcess(self._function, self._environment, self._log)
            self._busy.add(process)
            return process

    def _warm(self) -> FunctionProcess | None:
        while self._idle:
            process = self._idle.pop()
            if process.alive:
                return process
            process.close()
        return None

    def _given_back(self, process: FunctionProcess) -> None:
        with self._changed:
            self._busy.discard(process)
            reusable = process.alive and not self._closed
            if reusable:
                self._idle.append(process)
            self._changed.notify()
        if not reusable:
            process.close()


def _environment(function: FunctionDefinition) -> dict[str, str]:
    """What the process sees: nothing of ours, only what Lambda gives and what the template says."""
    return {
        "PATH": os.defpath,
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
        "PYTHONPATH": str(function.code),
        "LAMBDA_TASK_ROOT": str(function.code),
        "_HANDLER": function.handler,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.runtime}",
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_megabytes),
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{function.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": "local",
        "AWS_REGION": function.region,
        "AWS_DEFAULT_REGION": function.region,
        "AWS_ENDPOINT_URL": function.endpoint_url,
        "AWS_ACCESS_KEY_ID": function.credentials.access_key_id,
        "AWS_SECRET_ACCESS_KEY": function.credentials.secret_access_key,
        "AWS_SESSION_TOKEN": function.credentials.session_token,
        **function.environment,
    }
