"""The embedded cloud: the deployed template, running on this machine from `with` to the end of its block."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from tensorant_local import synthesis
from tensorant_local.aws.running import MachineHost
from tensorant_local.aws.server import EmbeddedAws
from tensorant_local.http_front import HttpFront
from tensorant_local.lambda_host import LambdaHost
from tensorant_local.provision import http_api_of, provision
from tensorant_local.provision.resources import Site
from tensorant_local.runpod_storage import RunPodStorage
from tensorant_local.template import Template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType

PROJECT = Path(__file__).parents[2]
STACK = "tensorant"

CONTEXT: dict[str, Any] = {"ephemeral": "true", "allowPrivateStorage": "true"}
"""CDK context of every local deployment: nothing outlives the process, and storage is on loopback."""


class Machines(MachineHost, Protocol):
    """The computers behind EC2 instances; the cloud listens to them, and closes them at its end."""

    powered_itself_off: Callable[[str], None]

    def close(self) -> None: ...


@dataclass(frozen=True)
class Tokens:
    """What a person signs in to. API calls carry the access token."""

    access_token: str = field(repr=False)
    id_token: str = field(repr=False)
    refresh_token: str = field(repr=False)


class LocalCloud:
    """Starts everything on loopback and, at the end, stops everything it started. One at a time in a process.

    `state` holds the cached template and the functions' logs. `context` is handed to the CDK app (the names
    are infra/deployment.py's). `template` replaces the project's. `time_scale` multiplies the state machine's
    seconds and the periods of schedules; these fire by themselves unless `schedules` is False. Raises what
    `synthesis.template` and `provision` raise.
    """

    def __init__(
        self,
        project: Path = PROJECT,
        *,
        state: Path | None = None,
        machines: Machines | None = None,
        context: Mapping[str, Any] | None = None,
        template: Mapping[str, Any] | None = None,
        code: Path | None = None,
        time_scale: float = 1.0,
        schedules: bool = True,
    ) -> None:
        self._project = project
        self._state = state or project / ".tensorant"
        self._context = {**CONTEXT, **(context or {})}
        self._template = template
        self._code = code or project / "functions"
        self._machines = machines
        self._held = contextlib.ExitStack()
        self._functions = LambdaHost(logs=self._state / "logs")
        self.volume: RunPodStorage
        """RunPod's S3 API with one network volume; known once the cloud has started."""
        self.aws = EmbeddedAws(
            invoker=self._functions, machines=machines, time_scale=time_scale, schedules_fire=schedules
        )
        self.api_url = ""
        self.outputs: Mapping[str, str] = {}
        self.startup_seconds: dict[str, float] = {}
        """How long each part of the start took. The template is read while the embedded AWS starts."""

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as held:
            self._start(held)
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    def client(self, service: str) -> Any:
        """A boto3 client of the embedded account."""
        return self.aws.client(service)

    def fire_schedules(self) -> None:
        """Let every schedule of the deployment fire now: the sweep, for one. Its function runs in the background."""
        self.aws.fire_schedules()

    def create_user(self, username: str, password: str, groups: tuple[str, ...] = ()) -> Tokens:
        """Make an account (`username` is its e-mail address), put it into groups, and sign it in."""
        pool = self.outputs["UserPoolId"]
        users = self.client("cognito-idp")
        users.admin_create_user(UserPoolId=pool, Username=username, MessageAction="SUPPRESS")
        users.admin_set_user_password(UserPoolId=pool, Username=username, Password=password, Permanent=True)
        for group in groups:
            users.admin_add_user_to_group(UserPoolId=pool, Username=username, GroupName=group)
        return self.sign_in(username, password)

    def sign_in(self, username: str, password: str) -> Tokens:
        """The tokens of an account, good for an hour."""
        result = self.client("cognito-idp").initiate_auth(
            ClientId=self.outputs["UserPoolClientId"],
            AuthFlow="USER_PASSWORD_AUTH",
            AuthParameters={"USERNAME": username, "PASSWORD": password},
        )["AuthenticationResult"]
        return Tokens(result["AccessToken"], result["IdToken"], result["RefreshToken"])

    def _start(self, held: contextlib.ExitStack) -> None:
        began = time.monotonic()
        with ThreadPoolExecutor(1, thread_name_prefix="synthesis") as beside:
            document = beside.submit(self._document)
            with self._timed("aws"):
                held.enter_context(self.aws)
            template = Template.parse(document.result())
        self.volume = held.enter_context(RunPodStorage())
        self._functions.surroundings["RUNPOD_STORAGE_ENDPOINT"] = self.volume.url
        front = HttpFront(self._functions)
        held.callback(front.close)
        held.callback(self._functions.close)  # before the front: it waits for calls under way
        self._connect_machines(held)
        site = Site(STACK, self.aws, self._functions, front, self._code)
        with self._timed("resources"), contextlib.closing(site):
            self.outputs = provision(template, site)
        front.serve(http_api_of(site))
        self.api_url = front.url
        self.startup_seconds["total"] = time.monotonic() - began

    def _document(self) -> Mapping[str, Any]:
        if self._template is not None:
            return self._template
        with self._timed("template"):
            return synthesis.template(self._project, cache=self._state / "synth", context=self._context)

    def _connect_machines(self, held: contextlib.ExitStack) -> None:
        if self._machines is not None:
            self._machines.powered_itself_off = self.aws.instance_powered_itself_off
            held.callback(self._machines.close)

    @contextlib.contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.startup_seconds[part] = time.monotonic() - began
