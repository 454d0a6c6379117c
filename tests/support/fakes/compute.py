"""`ports.Compute` as a little provider: machines change state only when a test lets time pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from tensorant.domain.connections import AwsSettings, CheckItem, CheckVerdict, Connection, GpuType, ImageFacts
from tensorant.domain.errors import Credentials
from tensorant.domain.failures import Failure
from tensorant.domain.machines import Call, Cause, Machine, Observation, RootVolume, Seen
from tensorant.domain.quotas import VcpuQuota
from tensorant.ports import Compute, ComputeCheck, CurrentPrice, Listed

PASSING = {Seen.PENDING: Seen.RUNNING, Seen.STOPPING: Seen.STOPPED, Seen.SHUTTING_DOWN: Seen.GONE}

GOOD_CHECK = ComputeCheck(
    items=(CheckItem(name="credentials", verdict=CheckVerdict.OK, seen="account 111122223333"),),
    account_id="111122223333",
    image=ImageFacts(root_device="/dev/sda1", root_gib=65, other_devices=("/dev/sdf",)),
    types=(
        GpuType(
            instance_type="g6.xlarge",
            gpu="L4",
            gpu_memory_mib=22888,
            vcpus=4,
            memory_mib=16384,
            zones=("us-east-1a",),
            usd_per_hour=Decimal("0.8048"),
        ),
    ),
    excluded={"g6.12xlarge": "it has 4 GPUs, and a run uses exactly one"},
    disk_usd_per_gib_month=Decimal("0.08"),
)

UNKNOWN_QUOTA = VcpuQuota(
    family="G and VT", code="L-DB2E81BA", needed=4, unknown_because="The policy does not allow to read it."
)


@dataclass
class Instance:
    id: str
    client_token: str
    user_data: str
    state: Seen
    started_at: datetime
    reason: str = ""
    cause: Cause | None = None
    never_ran_because: Failure | None = None
    volume: RootVolume | None = None
    tags: dict[str, str] = field(default_factory=dict)


@dataclass
class _Trouble:
    operation: str
    error: Exception
    acting: bool


@dataclass
class FakeCompute:
    """One account. `calls` tells what was asked of it, in order: an operation and what it was about."""

    account_id: str = "111122223333"
    starts_at: datetime = datetime(2026, 8, 1, 12, 0, 30, tzinfo=UTC)
    prices_per_hour: dict[str, Decimal | None] = field(
        default_factory=lambda: {"g6.xlarge": Decimal("0.8048")}
    )
    disk_usd_per_gib_month: Decimal | None = Decimal("0.08")
    check_result: ComputeCheck = GOOD_CHECK
    quota_result: VcpuQuota = UNKNOWN_QUOTA
    instances: dict[str, Instance] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    _troubles: list[_Trouble] = field(default_factory=list)
    _meanwhile: list[tuple[str, Callable[[], object]]] = field(default_factory=list)
    _made: int = 0

    # -- for tests ---------------------------------------------------------------------------------------

    def fail_next(self, operation: str, error: Exception, *, acting: bool = False) -> None:
        """The next `operation` raises; with `acting` it does its work first, as when an answer gets lost."""
        self._troubles.append(_Trouble(operation, error, acting))

    def during_next(self, operation: str, action: Callable[[], object]) -> None:
        """Somebody acts while the next `operation` is under way."""
        self._meanwhile.append((operation, action))

    def let_time_pass(self) -> None:
        """Every machine leaves the state that it is only passing through."""
        for instance in self.instances.values():
            instance.state = PASSING.get(instance.state, instance.state)

    def set(self, instance_id: str, state: Seen, reason: str = "") -> None:
        self.instances[instance_id].state = state
        self.instances[instance_id].reason = reason

    def end(
        self, instance_id: str, *, cause: Cause | None = None, never_ran_because: Failure | None = None
    ) -> None:
        """It is gone, and the provider says who, or what, did it."""
        instance = self.instances[instance_id]
        instance.state, instance.cause, instance.never_ran_because = Seen.GONE, cause, never_ran_because

    def keep_volume(self, instance_id: str, *, volume_id: str = "vol-1") -> None:
        """Somebody changes its disk to outlive it."""
        self.instances[instance_id].volume = RootVolume(volume_id=volume_id, deleted_on_termination=False)

    def restart(self, instance_id: str, *, at: datetime) -> None:
        """As its owner does in the provider's console."""
        instance = self.instances[instance_id]
        instance.state, instance.started_at, instance.reason = Seen.RUNNING, at, ""

    def add(self, instance: Instance) -> None:
        """A machine that was not asked for here."""
        self.instances[instance.id] = instance

    def forget(self, instance_id: str) -> None:
        """As EC2 does about an hour after a termination."""
        del self.instances[instance_id]

    def asked(self, operation: str) -> list[str]:
        return [about for called, about in self.calls if called == operation]

    # -- the port ----------------------------------------------------------------------------------------

    def check(self, settings: AwsSettings) -> ComputeCheck:
        self.calls.append(("check", settings.region))
        self._raise("check", acting=False)
        return self.check_result

    def prices(self, instance_types: Sequence[str]) -> Mapping[str, CurrentPrice]:
        self.calls.append(("prices", " ".join(instance_types)))
        self._raise("prices", acting=False)
        return {
            each: CurrentPrice(
                compute_usd_per_hour=self.prices_per_hour.get(each),
                disk_usd_per_gib_month=self.disk_usd_per_gib_month,
            )
            for each in instance_types
        }

    def quota(self, instance_type: str) -> VcpuQuota:
        self.calls.append(("quota", instance_type))
        self._raise("quota", acting=False)
        return self.quota_result

    def ask(self, machine: Machine, *, user_data: str) -> Observation:
        self.calls.append(("ask", machine.client_token))
        self._raise("ask", acting=False)
        if machine.account_id != self.account_id:
            raise Credentials("other_account", f"The credentials are of account {self.account_id}.")
        instance = self._by_token(machine.client_token) or self._make(machine, user_data)
        self._raise("ask", acting=True)
        return _seen(instance)

    def observe(self, machine: Machine) -> Observation:
        self.calls.append(("observe", machine.instance_id or machine.client_token))
        self._raise("observe", acting=False)
        instance = (
            self.instances.get(machine.instance_id)
            if machine.instance_id
            else self._by_token(machine.client_token)
        )
        if instance is None:
            return Observation(state=Seen.MISSING, account_id=self.account_id)
        return _seen(instance)

    def make(self, call: Call, machine: Machine) -> None:
        self.calls.append((call.value, machine.instance_id or "nothing"))
        self._raise(call.value, acting=False)
        instance = self.instances.get(machine.instance_id or "")
        if instance is None:
            return
        if call is Call.STOP:
            if instance.state is Seen.RUNNING:
                instance.state = Seen.STOPPING
        elif instance.state is Seen.STOPPED:
            instance.state = Seen.GONE
        elif instance.state is not Seen.GONE:
            instance.state = Seen.SHUTTING_DOWN
        self._raise(call.value, acting=True)

    def listed(self, deployment_id: str) -> Sequence[Listed]:
        self.calls.append(("list", deployment_id))
        self._raise("list", acting=False)
        return [
            _listed(instance)
            for instance in self.instances.values()
            if instance.tags.get("tensorant:deployment") == deployment_id and instance.state is not Seen.GONE
        ]

    def stop(self, instance_id: str) -> None:
        self.calls.append(("stop", instance_id))
        self._raise("stop", acting=False)
        self.instances[instance_id].state = Seen.STOPPING

    # -- inside ------------------------------------------------------------------------------------------

    def _make(self, machine: Machine, user_data: str) -> Instance:
        self._made += 1
        instance = Instance(
            id=f"i-{self._made:017x}",
            client_token=machine.client_token,
            user_data=user_data,
            state=Seen.PENDING,
            started_at=self.starts_at,
            tags=dict(machine.parameters.tags),
        )
        self.instances[instance.id] = instance
        return instance

    def _by_token(self, client_token: str) -> Instance | None:
        found = (each for each in self.instances.values() if each.client_token == client_token)
        return next(found, None)

    def _raise(self, operation: str, *, acting: bool) -> None:
        for each in [each for each in self._meanwhile if each[0] == operation]:
            self._meanwhile.remove(each)
            each[1]()
        for trouble in self._troubles:
            if (trouble.operation, trouble.acting) == (operation, acting):
                self._troubles.remove(trouble)
                raise trouble.error


def _seen(instance: Instance) -> Observation:
    return Observation(
        state=instance.state,
        instance_id=instance.id,
        started_at=instance.started_at,
        reason=instance.reason,
        cause=instance.cause,
        never_ran_because=instance.never_ran_because,
        root_volume=instance.volume,
    )


def _listed(instance: Instance) -> Listed:
    attempt = instance.tags.get("tensorant:attempt", "")
    return Listed(
        observation=_seen(instance),
        client_token=instance.client_token or None,
        run_id=instance.tags.get("tensorant:run"),
        attempt=int(attempt) if attempt.isdecimal() else None,
    )


@dataclass
class FakeComputes:
    """Opens one provider for each connection; `trouble` is raised instead."""

    by_connection: Mapping[str, Compute]
    trouble: Exception | None = None

    def open(self, connection: Connection) -> Compute:
        if self.trouble is not None:
            raise self.trouble
        return self.by_connection[connection.id]
