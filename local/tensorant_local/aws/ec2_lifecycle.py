"""The life of an EC2 instance: states that take time, their events, and the machine behind it.

Source of states and reasons: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html
"""

from __future__ import annotations

import base64
import functools
from datetime import UTC, datetime
from enum import IntEnum
from threading import RLock
from typing import TYPE_CHECKING, Any

from moto.core.utils import utcnow
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends
from moto.ec2.models.instances import Instance, InstanceState, StateReason

from tensorant_local.aws import events
from tensorant_local.aws.running import cloud

if TYPE_CHECKING:
    from collections.abc import Callable

BY_USER = ("Client.UserInitiatedShutdown", "User initiated shutdown")
BY_INSTANCE = ("Client.InstanceInitiatedShutdown", "Instance initiated shutdown")

lock = RLock()
"""Held around every look at, and change of, an instance's state."""


class State(IntEnum):
    """Instance states by their codes."""

    PENDING = 0
    RUNNING = 16
    SHUTTING_DOWN = 32
    TERMINATED = 48
    STOPPING = 64
    STOPPED = 80

    @property
    def label(self) -> str:
        """The state as the API writes it."""
        return self.name.lower().replace("_", "-")


def state_of(instance: Any) -> State:
    return State(instance._state.code)


def find(instance_id: str) -> Any:
    """The instance, in whatever account and region. Raises `LookupError` for an unknown one."""
    for account in ec2_backends.values():
        for backend in account.values():
            if instance := backend.get_instance_by_id(instance_id):
                return instance
    raise LookupError(instance_id)


# -- requests ----------------------------------------------------------------------------------------------


def begin(instance: Any) -> None:
    """A new instance, or a stopped one that starts: pending, then running. The lock is held."""
    instance.boots = getattr(instance, "boots", 0) + 1
    _enter(instance, State.PENDING)
    failure = cloud().failures.get(instance.instance_type) if instance.boots == 1 else None
    if failure is not None:
        _later(cloud().delays.pending, instance, State.PENDING, terminate, failure)
    else:
        _later(cloud().delays.pending, instance, State.PENDING, _run)


def start(instance: Any) -> InstanceState:
    """StartInstances for one instance; answers its previous state. The lock is held."""
    before = state_of(instance)
    if before is State.STOPPED:
        instance.launch_time = utcnow()
        begin(instance)
    elif before not in {State.PENDING, State.RUNNING}:
        raise _incorrect_state(instance, "started")
    return _as_moto(before)


def stop(instance: Any, reason: tuple[str, str] = BY_USER) -> InstanceState:
    """StopInstances for one instance; answers its previous state. The lock is held."""
    before = state_of(instance)
    if before is State.RUNNING:
        _enter(instance, State.STOPPING, reason)
        _on_machine(instance, cloud().machines.power_off)
        _on_machine(instance, lambda _: _later(cloud().delays.stopping, instance, State.STOPPING, _rest))
    elif before not in {State.STOPPING, State.STOPPED}:
        raise _incorrect_state(instance, "stopped")
    return _as_moto(before)


def terminate(instance: Any, reason: tuple[str, str] = BY_USER) -> InstanceState:
    """TerminateInstances for one instance, any number of times; answers its previous state. The lock is held."""
    before = state_of(instance)
    if before in {State.SHUTTING_DOWN, State.TERMINATED}:
        return _as_moto(before)
    _on_machine(instance, cloud().machines.destroy)
    if before is State.STOPPED:
        _vanish(instance, reason)
    else:
        _enter(instance, State.SHUTTING_DOWN, reason)
        _on_machine(
            instance,
            lambda _: _later(cloud().delays.shutting_down, instance, State.SHUTTING_DOWN, _vanish, reason),
        )
    return _as_moto(before)


def reboot(instance: Any) -> None:
    """RebootInstances for one instance: its state doesn't change. The lock is held."""
    if state_of(instance) is not State.RUNNING:
        raise _incorrect_state(instance, "rebooted")
    instance.boots += 1
    _on_machine(instance, cloud().machines.power_off)
    _on_machine(instance, functools.partial(_boot, instance, first=False))


def powered_itself_off(instance_id: str) -> None:
    """The machine's operating system shut down: stop or terminate, as the instance was told at launch."""
    with lock:
        instance = find(instance_id)
        if state_of(instance) is State.RUNNING:
            ends = instance.instance_initiated_shutdown_behavior == "terminate"
            (terminate if ends else stop)(instance, BY_INSTANCE)


def _incorrect_state(instance: Any, verb: str) -> EC2ClientError:
    message = f"The instance '{instance.id}' is not in a state from which it can be {verb}."
    return EC2ClientError("IncorrectInstanceState", message)


def _as_moto(state: State) -> InstanceState:
    return InstanceState(state.label, int(state))


# -- what time brings --------------------------------------------------------------------------------------


def _run(instance: Any) -> None:
    for nic in instance.nics.values():
        nic.start()
    _enter(instance, State.RUNNING)
    _on_machine(instance, functools.partial(_boot, instance, first=instance.boots == 1))


def _boot(instance: Any, instance_id: str, *, first: bool) -> None:
    user_data = base64.b64decode(str(instance.user_data)) if instance.user_data else b""
    cloud().machines.boot(instance_id, user_data, first=first)


def _rest(instance: Any) -> None:
    for nic in instance.nics.values():
        nic.stop()
    _enter(instance, State.STOPPED)


def _vanish(instance: Any, reason: tuple[str, str] = BY_USER) -> None:
    """The volumes and interfaces go now; the instance stays visible."""
    _release(instance)
    _enter(instance, State.TERMINATED, reason)


_release = Instance.terminate
"""moto's own, which frees at once what an instance holds; taken before it is mended."""


def _later(
    seconds: float, instance: Any, expected: State, change: Callable[..., None], *arguments: object
) -> None:
    def fire() -> None:
        with lock:
            if state_of(instance) is expected:
                change(instance, *arguments)

    cloud().background.later(seconds, fire)


def _on_machine(instance: Any, call: Callable[[str], object]) -> None:
    """Calls to one machine come one after another, and never hold up the API."""
    cloud().background.in_order(f"machine {instance.id}", functools.partial(call, instance.id))


def _enter(instance: Any, state: State, reason: tuple[str, str] | None = None) -> None:
    """Set state and reasons as AWS shows them, and tell the default bus. Entering by itself keeps the reason."""
    instance._state = InstanceState(state.label, int(state))
    if state in {State.PENDING, State.RUNNING}:
        instance._reason = ""
        instance.state_reason = StateReason("pending", "pending") if state is State.PENDING else None
    elif reason:
        code, meaning = reason
        at = datetime.now(tz=UTC).strftime("%Y-%m-%d %H:%M:%S GMT")
        instance._reason = f"User initiated ({at})" if reason == BY_USER else ""
        instance.state_reason = StateReason(f"{code}: {meaning}", code)
    region, account_id = instance.ec2_backend.region_name, instance.owner_id
    events.emit(
        account_id,
        region,
        source="aws.ec2",
        detail_type="EC2 Instance State-change Notification",
        detail={"instance-id": instance.id, "state": state.label},
        resources=[f"arn:aws:ec2:{region}:{account_id}:instance/{instance.id}"],
    )
