"""A machine: what it is meant to become, what the provider says it is, and the one call between the two."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum

from tensorant.domain.deliveries import NOT_BEGUN, Delivery
from tensorant.domain.failures import Failure
from tensorant.domain.quotes import Quote


class Goal(IntEnum):
    """What a machine is meant to become. It can only be raised."""

    RUN = 0
    STOPPED = 1
    GONE = 2


class Disposition(StrEnum):
    """Why a machine may go away: without one of these its disk is kept."""

    VERIFIED = "verified"
    DISCARDED = "discarded"
    NOTHING_TO_KEEP = "nothing_to_keep"


class Seen(StrEnum):
    """A machine as its provider described it last."""

    NOTHING = "nothing"
    """Asked for, and not seen yet."""
    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    SHUTTING_DOWN = "shutting_down"
    GONE = "gone"
    MISSING = "missing"
    """The provider knows no such machine; whether that means gone depends on who asked (see `observed`)."""


class Call(StrEnum):
    STOP = "stop"
    TERMINATE = "terminate"


class MachineState(StrEnum):
    """One word for people; never stored, always derived."""

    ASKED = "asked"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    RETAINED = "retained"
    RECOVERING = "recovering"
    """Started again by its owner after it was confirmed stopped."""
    RELEASING = "releasing"
    RELEASED = "released"
    NEVER_EXISTED = "never_existed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What is asked for in one attempt."""

    instance_type: str
    subnet_id: str

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that name the candidate."""
        return hashlib.sha256(f"{self.instance_type}/{self.subnet_id}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchParameters:
    """Everything that a repeated ask must send identically.

    The one-time token is not here: user data carries a placeholder, and the token is derived again.
    """

    region: str
    image_id: str
    root_device: str
    other_devices: tuple[str, ...]
    disk_gib: int
    security_group_id: str
    key_name: str | None
    instance_profile_arn: str | None
    user_data: str
    tags: dict[str, str]


class Cause(StrEnum):
    """Who brought a machine to a stop or to its end, as its provider tells it."""

    CALL = "call"
    """Somebody with rights in the account, through the provider's API or console; Tensorant's own calls too."""
    HOST = "host"
    """The machine's own operating system."""
    PROVIDER = "provider"
    """For maintenance, after a fault, or for want of capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RootVolume:
    """The machine's disk, as its provider describes it. Tensorant asks for one that goes with the machine."""

    volume_id: str
    deleted_on_termination: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One reading of a provider. `account_id` is whose credentials read it, where that was asked."""

    state: Seen
    instance_id: str | None = None
    started_at: datetime | None = None
    reason: str = ""
    cause: Cause | None = None
    """None where the provider does not say, and of machines that run."""
    never_ran_because: Failure | None = None
    """Why a machine that was made ended before it could run, where the provider says so."""
    root_volume: RootVolume | None = None
    """None where it can't be seen."""
    account_id: str | None = None


MINIMUM_BILLED_SECONDS = 60.0
"""EC2 bills each start per second, for at least a minute (AWS: On-Demand pricing)."""

RECOVERY_WINDOW = timedelta(hours=2)
"""How long a restarted machine stays up for its owner to fetch the archive; a restart begins a new one."""

ASK_LEASE = timedelta(minutes=5)
"""How long an unanswered ask may still turn into an instance (EC2: function time-out plus read lag)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One attempt of a run: stored before the provider is asked, and kept for good."""

    run_id: str
    attempt: int
    organization_id: str
    connection_id: str
    account_id: str
    candidate: Candidate
    parameters: LaunchParameters
    quote: Quote
    asked_at: datetime
    """When the question was put last."""
    asks: int = 1
    """How often it was put."""
    goal: Goal = Goal.RUN
    disposition: Disposition | None = None
    instance_id: str | None = None
    seen: Seen = Seen.NOTHING
    seen_at: datetime | None = None
    started_at: datetime | None = None
    """The provider's own start of the present, or the last, running period."""
    ran_until: datetime | None = None
    """When that period was first seen to have ended."""
    first_started_at: datetime | None = None
    ran_seconds_before: float = 0.0
    """Billed seconds of earlier running periods."""
    reason: str = ""
    """The provider's words for the present state."""
    cause: Cause | None = None
    never_ran_because: Failure | None = None
    root_volume: RootVolume | None = None
    """As it was seen last."""
    nonce: str | None = None
    """The machine's own secret number, bound at its first exchange."""
    delivery: Delivery = NOT_BEGUN
    refusal: Failure | None = None
    trouble: Failure | None = None
    """What the provider said to the last call toward the goal, if it refused."""
    confirmed_stopped_at: datetime | None = None
    """The last time that it was seen to have come to a stop."""
    confirmed_gone_at: datetime | None = None
    version: int = 0

    @property
    def client_token(self) -> str:
        """The provider's idempotency token: the same ask makes one machine (EC2: 64 characters at most)."""
        return f"{self.run_id}-{self.attempt}-{self.candidate.digest}"

    @property
    def closed(self) -> bool:
        """Nothing of it is left at the provider, as far as anybody can tell for good."""
        return self.confirmed_gone_at is not None

    @property
    def state(self) -> MachineState:
        """For people: where it stands between its goal and the provider."""
        if self.closed:
            return MachineState.NEVER_EXISTED if self.instance_id is None else MachineState.RELEASED
        if self.goal is Goal.GONE:
            return MachineState.RELEASING
        if self.goal is Goal.STOPPED:
            return self._kept_state()
        if self.instance_id is None:
            return MachineState.ASKED
        return MachineState.RUNNING if self.seen is Seen.RUNNING else MachineState.STARTING

    def _kept_state(self) -> MachineState:
        if self.seen is Seen.STOPPED:
            return MachineState.RETAINED
        return MachineState.RECOVERING if self.restarted else MachineState.STOPPING

    @property
    def restarted(self) -> bool:
        """It was confirmed stopped, and the provider has started it since."""
        if self.confirmed_stopped_at is None or self.started_at is None:
            return False
        return self.seen in {Seen.PENDING, Seen.RUNNING} and self.started_at > self.confirmed_stopped_at

    def shielded(self, now: datetime) -> bool:
        """Its owner is recovering the adapter: not to be stopped until the window ends."""
        return self.restarted and self.started_at is not None and now < self.started_at + RECOVERY_WINDOW

    @property
    def never_ran(self) -> bool:
        """It is ending, or gone, before it could speak, and the provider says that it could not run."""
        ending = self.seen in {Seen.SHUTTING_DOWN, Seen.GONE}
        return ending and self.nonce is None and self.never_ran_because is not None

    @property
    def kept_volume(self) -> RootVolume | None:
        """Its disk, if somebody has changed it to outlive the machine."""
        volume = self.root_volume
        return volume if volume is not None and not volume.deleted_on_termination else None

    @property
    def left_over_volume(self) -> RootVolume | None:
        """A disk that stays at the provider, and costs money there, now that the machine is gone."""
        return self.kept_volume if self.state is MachineState.RELEASED else None

    @property
    def at_goal(self) -> bool:
        """The provider has confirmed the goal (a machine that is gone is past every goal)."""
        return self.closed or (self.goal is Goal.STOPPED and self.seen is Seen.STOPPED)

    def raised(self, goal: Goal, disposition: Disposition | None = None) -> Machine:
        """With its goal raised; a lower goal changes nothing. GONE needs a disposition."""
        if goal <= self.goal:
            return self
        if goal is Goal.GONE and disposition is None:
            raise ValueError("a machine goes away only with a disposition")
        return replace(self, goal=goal, disposition=disposition or self.disposition)

    def bound(self, nonce: str) -> Machine:
        return replace(self, nonce=nonce)

    def refused(self, failure: Failure, *, at: datetime) -> Machine:
        """The provider said no: this ask never made a machine."""
        return replace(
            self,
            goal=Goal.GONE,
            disposition=Disposition.NOTHING_TO_KEEP,
            refusal=failure,
            confirmed_gone_at=at,
        )

    def passed_over(self, failure: Failure) -> Machine:
        """It never ran: it goes, nothing is lost, and the run asks for another one."""
        return replace(self.raised(Goal.GONE, Disposition.NOTHING_TO_KEEP), refusal=failure)

    def asked_again(self, *, at: datetime) -> Machine:
        """The lease runs from the last time the question was put."""
        return replace(self, asked_at=at, asks=self.asks + 1)

    def observed(self, seen: Observation, *, at: datetime) -> Machine:
        """With what the provider said.

        MISSING counts as gone only if the machine had been seen and the reader is of the recorded
        account; of an ask that never got an id, only after its lease.
        """
        if seen.state is Seen.MISSING:
            return self._missing(seen, at=at)
        return replace(
            self,
            instance_id=self.instance_id or seen.instance_id,
            seen=seen.state,
            seen_at=at,
            started_at=seen.started_at or self.started_at,
            first_started_at=self.first_started_at or seen.started_at,
            ran_until=self._ran_until(seen, at),
            ran_seconds_before=self._ran_seconds_before(seen.started_at),
            reason=seen.reason,
            cause=seen.cause,
            never_ran_because=seen.never_ran_because or self.never_ran_because,
            root_volume=seen.root_volume or self.root_volume,
            confirmed_stopped_at=self._confirmed_stopped_at(seen.state, at),
            confirmed_gone_at=at if seen.state is Seen.GONE else None,
        )

    def _confirmed_stopped_at(self, seen: Seen, at: datetime) -> datetime | None:
        came_to_a_stop = seen is Seen.STOPPED and self.seen is not Seen.STOPPED
        return at if came_to_a_stop else self.confirmed_stopped_at

    def _ran_seconds_before(self, started_at: datetime | None) -> float:
        """A later start closes the period before it."""
        if self.started_at is None or started_at is None or not self._started_again(started_at):
            return self.ran_seconds_before
        return self.ran_seconds_before + billed_seconds(self.started_at, self.ran_until or started_at)

    def _started_again(self, started_at: datetime | None) -> bool:
        return started_at is not None and self.started_at is not None and started_at > self.started_at

    def _ran_until(self, seen: Observation, at: datetime) -> datetime | None:
        """The end of the period before is not the end of one that nobody saw running."""
        if seen.state in {Seen.PENDING, Seen.RUNNING}:
            return None
        return at if self._started_again(seen.started_at) else self.ran_until or at

    def _missing(self, seen: Observation, *, at: datetime) -> Machine:
        if seen.account_id != self.account_id or at < self.asked_at + ASK_LEASE:
            return self
        if self.instance_id is None:
            return self if self.goal is Goal.RUN else replace(self, confirmed_gone_at=at)
        return replace(
            self, seen=Seen.GONE, seen_at=at, confirmed_gone_at=at, reason=self.reason or "not found"
        )


def billed_seconds(start: datetime, end: datetime) -> float:
    """What a running period is billed for."""
    return max(MINIMUM_BILLED_SECONDS, (end - start).total_seconds())


def next_call(goal: Goal, seen: Seen, *, shielded: bool = False) -> Call | None:
    """The one provider call that brings a machine nearer its goal; None if there is none to make.

    A machine on its way (stopping, shutting down) is left alone: asking twice helps nobody.
    A pending machine can't be stopped yet, only terminated. A shielded one is being used for recovery: that
    holds off a stop, never a termination.
    """
    match goal, seen:
        case _, Seen.GONE | Seen.SHUTTING_DOWN | Seen.NOTHING | Seen.MISSING:
            return None
        case Goal.GONE, _:
            return Call.TERMINATE
        case Goal.STOPPED, Seen.RUNNING if not shielded:
            return Call.STOP
        case _:
            return None
