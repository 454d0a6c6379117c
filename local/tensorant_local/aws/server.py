"""The embedded AWS: moto's server in this process, on loopback, with its defects mended."""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Self

import boto3.session
from moto import settings
from moto.core.base_backend import BackendDict
from moto.core.config import default_user_config
from moto.core.model_instances import reset_model_data
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

from tensorant_local.aws import (
    dynamodb,
    ec2,
    ec2_lifecycle,
    events,
    lambdas,
    pricing,
    quotas,
    running,
    schedules,
    stepfunctions,
    sts,
)
from tensorant_local.aws.running import Cloud, Delays, Invocation, LambdaInvoker, MachineHost

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType
    from wsgiref.types import StartResponse, WSGIEnvironment

    from werkzeug.serving import BaseWSGIServer

MOTO_VERSION = "5.2.5"
"""The one version whose insides the mends know."""
REGION = "us-east-1"
ACCOUNT_ID = "123456789012"

_ENVIRONMENT = {
    "MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION": "1",
    "MOTO_ENABLE_AMI_VALIDATION": "1",
    "MOTO_ENABLE_KEYPAIR_VALIDATION": "1",
    "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",  # they are from 2017, and slow to load
}
_SETTINGS = ("EC2_ENABLE_INSTANCE_TYPE_VALIDATION", "ENABLE_AMI_VALIDATION", "ENABLE_KEYPAIR_VALIDATION")
_CONFIGURATION = {"stepfunctions": {"execute_state_machine": True}, "lambda": {"use_docker": False}}

_session = boto3.session.Session()
_making_clients = Lock()
"""Making clients isn't thread-safe; the session is shared, since it keeps what it read about each service."""


class EmbeddedAws:
    """An AWS account on 127.0.0.1 from `start` to `stop`, or as a context manager. One at a time in a process.

    `time_scale` multiplies the seconds of state machines (waits, retries, time-outs and heartbeats) and the
    periods of schedules; with `schedules_fire` False these fire when told only (`fire_schedules`).
    Raises `RuntimeError` when moto has another version than `MOTO_VERSION`.
    """

    region = REGION
    account_id = ACCOUNT_ID

    def __init__(
        self,
        *,
        invoker: LambdaInvoker | None = None,
        machines: MachineHost | None = None,
        delays: Delays | None = None,
        time_scale: float = 1.0,
        invocation_retry_seconds: float = 0.2,
        schedules_fire: bool = True,
    ) -> None:
        _refuse_other_versions()
        self._cloud = Cloud(
            invoker=invoker or _no_functions,
            machines=machines or _NoMachines(),
            delays=delays or Delays(),
            time_scale=time_scale,
            invocation_retry_seconds=invocation_retry_seconds,
            schedules_fire=schedules_fire,
        )
        self._held = contextlib.ExitStack()
        self._port = 0

    def attach(self, *, invoker: LambdaInvoker | None = None, machines: MachineHost | None = None) -> None:
        """Give a cloud that runs its functions or its machines, which may need its `url` themselves."""
        self._cloud.invoker = invoker or self._cloud.invoker
        self._cloud.machines = machines or self._cloud.machines

    @property
    def url(self) -> str:
        """The endpoint of every service."""
        return f"http://127.0.0.1:{self._port}"

    def client(self, service: str, **options: Any) -> Any:
        """A boto3 client of this account; `options` as boto3 takes them."""
        defaults = {
            "endpoint_url": self.url,
            "region_name": self.region,
            "aws_access_key_id": "embedded",
            "aws_secret_access_key": "embedded",
        }
        with _making_clients:
            return _session.client(service, **(defaults | options))  # type: ignore[call-overload]

    def refuse_launches(self, instance_type: str, code: str | None) -> None:
        """From here on EC2 answers launches of that type with an error code; None: no longer."""
        self._cloud.refusals.pop(instance_type, None)
        if code is not None:
            self._cloud.refusals[instance_type] = code

    def fail_launches(self, instance_type: str, reason: tuple[str, str] | None) -> None:
        """From here on EC2 makes instances of that type and ends them while they are pending; None: no longer.

        `reason` is a state reason's code and meaning.
        """
        self._cloud.failures.pop(instance_type, None)
        if reason is not None:
            self._cloud.failures[instance_type] = reason

    def fire_schedules(self) -> None:
        """Let every schedule fire now, besides its own times; its targets are called in the background."""
        schedules.fire_all()

    def refuse_action(self, action: str, code: str | None) -> None:
        """From here on that action is answered with an error code; None: no longer.

        An action of EC2 (as `TerminateInstances`), of the Pricing API or of Service Quotas.
        """
        self._cloud.refused_actions.pop(action, None)
        if code is not None:
            self._cloud.refused_actions[action] = code

    def instance_powered_itself_off(self, instance_id: str) -> None:
        """For the machine host: the operating system of an instance has shut down."""
        ec2_lifecycle.powered_itself_off(instance_id)

    def start(self) -> Self:
        """Serve on a free port."""
        for module in (lambdas, events, schedules, stepfunctions, ec2, dynamodb, sts):
            module.apply()
        with contextlib.ExitStack() as held:
            running.begin(self._cloud)
            held.callback(running.end)
            held.callback(_reset)
            server = make_server(
                "127.0.0.1", 0, _dispatcher(), threaded=True, request_handler=MotoRequestHandler
            )
            held.callback(server.server_close)
            self._port = server.server_port
            held.enter_context(_quiet())
            held.enter_context(_configured(self._port))
            held.enter_context(_serving(server))
            held.callback(stepfunctions.stop_all)
            self._held = held.pop_all()
        return self

    def stop(self) -> None:
        """Abort executions, end every thread, and forget the account."""
        self._held.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class _NoMachines:
    """Instances without computers behind them."""

    def boot(self, instance_id: str, user_data: bytes, first: bool) -> None:  # noqa: FBT001 - see MachineHost
        pass

    def power_off(self, instance_id: str) -> None:
        pass

    def destroy(self, instance_id: str) -> None:
        pass


def _no_functions(function_name: str, payload: bytes) -> Invocation:
    raise LookupError(
        f"nothing runs {function_name}: the embedded cloud was given no invoker ({len(payload)} bytes)"
    )


def _refuse_other_versions() -> None:
    found = importlib.metadata.version("moto")
    if found != MOTO_VERSION:
        message = f"The embedded cloud mends moto {MOTO_VERSION}, but moto {found} is installed."
        raise RuntimeError(f"{message} Install moto=={MOTO_VERSION}.")


def _dispatcher() -> Any:
    application = DomainDispatcherApplication(create_backend_app)

    def dispatch(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if pricing.is_for_pricing(environ):
            return pricing.answer(environ, start_response)
        if quotas.is_for_quotas(environ):
            return quotas.answer(environ, start_response)
        answer: Iterable[bytes] = application(environ, start_response)
        return answer

    return dispatch


@contextlib.contextmanager
def _serving(server: BaseWSGIServer) -> Iterator[None]:
    thread = Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="cloud-server", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


@contextlib.contextmanager
def _configured(port: int) -> Iterator[None]:
    """Moto is configured by environment, module constants and a dictionary; all of it comes back."""
    wanted = _ENVIRONMENT | {"MOTO_PORT": str(port)}
    environment = {name: os.environ.get(name) for name in wanted}
    constants = {name: getattr(settings, name) for name in _SETTINGS}
    configuration = dict(default_user_config)
    os.environ.update(wanted)
    for name in _SETTINGS:
        setattr(settings, name, True)
    default_user_config.update(_CONFIGURATION)
    try:
        yield
    finally:
        for name, value in environment.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        for name, constant in constants.items():
            setattr(settings, name, constant)
        default_user_config.clear()
        default_user_config.update(configuration)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No line per request, and no error for each failure that a state machine catches."""
    levels = {"werkzeug": logging.ERROR, "moto.stepfunctions": logging.CRITICAL}
    before = {name: logging.getLogger(name).level for name in levels}
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def _reset() -> None:
    BackendDict.reset()
    reset_model_data()
