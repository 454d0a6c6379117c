"""The one cloud that runs in this process. moto's state is global, so there can be no second one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from tensorant_local.aws.background import Background


@dataclass(frozen=True)
class Invocation:
    """What a function answered: its payload, and `Unhandled` where it is an error's description."""

    payload: bytes
    error: str | None = None


class LambdaInvoker(Protocol):
    """Runs a deployed function to its end. An exception stands for trouble of Lambda itself."""

    def __call__(self, function_name: str, payload: bytes) -> Invocation: ...


class MachineHost(Protocol):
    """The computers behind EC2 instances. Calls for one instance come one after another."""

    def boot(self, instance_id: str, user_data: bytes, first: bool) -> None:  # noqa: FBT001 - every start says it
        """Start the machine; `first` is False when its disk has booted before."""

    def power_off(self, instance_id: str) -> None:
        """Stop the machine and keep its disk. Returns when it is off."""

    def destroy(self, instance_id: str) -> None:
        """End the machine with its disk. Returns when nothing of it runs."""


@dataclass(frozen=True)
class Delays:
    """How long an instance stays in each passing state, in seconds."""

    pending: float = 0.2
    stopping: float = 0.2
    shutting_down: float = 0.2


@dataclass
class Cloud:
    """What the mended parts of moto need of the cloud that runs them."""

    invoker: LambdaInvoker
    machines: MachineHost
    delays: Delays
    time_scale: float
    invocation_retry_seconds: float
    schedules_fire: bool = True
    """Whether rules with a schedule fire by themselves."""
    background: Background = field(default_factory=Background)
    refusals: dict[str, str] = field(default_factory=dict)
    """Error codes of launches that EC2 refuses, by instance type."""
    failures: dict[str, tuple[str, str]] = field(default_factory=dict)
    """State reasons (code, meaning) with which instances that are made end before they run, by instance type."""
    refused_actions: dict[str, str] = field(default_factory=dict)
    """Error codes of all that EC2, the Pricing API and Service Quotas refuse, by action."""


_current: list[Cloud] = []


def begin(cloud: Cloud) -> None:
    """Let the cloud be the one that runs. Raises `RuntimeError` while another does."""
    if _current:
        raise RuntimeError("an embedded cloud is running in this process already: stop it first")
    _current.append(cloud)


def end() -> None:
    """From here on moto behaves as it came."""
    while _current:
        _current.pop().background.stop()


def is_running() -> bool:
    return bool(_current)


def cloud() -> Cloud:
    """The cloud that runs."""
    return _current[0]
