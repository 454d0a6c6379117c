"""The provider's own books: who was ever made, by which ask, when it ran, who stopped or ended it.

The promises are checked against these, never against what Tensorant recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

from tensorant.domain.machines import Machine, Seen
from tests.simulation.scheduler import Scheduler

ALIVE = frozenset({Seen.PENDING, Seen.RUNNING, Seen.STOPPING, Seen.STOPPED, Seen.SHUTTING_DOWN})
FORGOTTEN_AFTER_SECONDS = 3600.0
"""EC2 shows a terminated instance for about an hour."""


@dataclass
class Period:
    """One running period, in seconds of virtual time."""

    start: float
    end: float | None = None


@dataclass(frozen=True)
class Order:
    """A call that changes a machine. `by` is `tensorant`, `user`, `host` or `provider`."""

    at: float
    what: str
    by: str
    note: str = ""


@dataclass(eq=False)
class Rented:
    """One machine, as its provider knows it."""

    id: str
    account: str
    token: str
    run_id: str
    attempt: int
    tags: dict[str, str]
    user_data: str
    usd_per_hour: Decimal
    created_at: float
    visible_at: float
    state: Seen = Seen.PENDING
    reason: str = ""
    periods: list[Period] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    history: list[tuple[float, Seen]] = field(default_factory=list)
    boots: int = 0
    gone_at: float | None = None
    forgotten: bool = False
    stray: bool = False
    """Somebody else's machine that carries our tags."""
    locked: bool = False
    """Its tags were removed: the account's policy refuses to stop or terminate it."""

    @property
    def alive(self) -> bool:
        return self.state in ALIVE

    @property
    def started_at(self) -> float:
        return self.periods[-1].start

    def ran(self, now: float) -> float:
        """Seconds, all running periods together."""
        return sum((each.end if each.end is not None else now) - each.start for each in self.periods)

    def state_at(self, moment: float) -> Seen | None:
        """What a reader sees whose answer is as old as that; None before it was made."""
        found = None
        for at, state in self.history:
            if at > moment:
                break
            found = state
        return found


@dataclass
class Books:
    """Every machine of every account. `changed` hears of each change of state."""

    scheduler: Scheduler
    machines: list[Rented] = field(default_factory=list)
    changed: Callable[[Rented], object] = lambda _: None
    _made: int = 0

    def make(self, machine: Machine, user_data: str, account: str, price: Decimal, *, lag: float) -> Rented:
        now = self.scheduler.now
        rented = Rented(
            id=self._next_id(),
            account=account,
            token=machine.client_token,
            run_id=machine.run_id,
            attempt=machine.attempt,
            tags=dict(machine.parameters.tags),
            user_data=user_data,
            usd_per_hour=price,
            created_at=now,
            visible_at=now + lag,
        )
        return self._begin(rented)

    def stray(self, tags: dict[str, str], account: str) -> Rented:
        """A person starts a machine of their own, with tags copied from one of ours."""
        now = self.scheduler.now
        rented = Rented(
            id=self._next_id(),
            account=account,
            token="",
            run_id=tags.get("tensorant:run", ""),
            attempt=int(tags.get("tensorant:attempt", "0")),
            tags=tags,
            user_data="",
            usd_per_hour=Decimal(0),
            created_at=now,
            visible_at=now,
            stray=True,
        )
        return self._begin(rented)

    def _next_id(self) -> str:
        self._made += 1
        return f"i-{self._made:017x}"

    def _begin(self, rented: Rented) -> Rented:
        rented.periods.append(Period(self.scheduler.now))
        self.machines.append(rented)
        self.enter(rented, Seen.PENDING)
        return rented

    def enter(self, rented: Rented, state: Seen, reason: str = "") -> None:
        rented.state, rented.reason = state, reason
        rented.history.append((self.scheduler.now, state))
        if state not in {Seen.PENDING, Seen.RUNNING} and rented.periods[-1].end is None:
            rented.periods[-1].end = self.scheduler.now
        if state is Seen.GONE:
            rented.gone_at = self.scheduler.now
        self.changed(rented)

    def order(self, rented: Rented, what: str, by: str, note: str = "") -> None:
        rented.orders.append(Order(self.scheduler.now, what, by, note))

    def of_run(self, run_id: str) -> list[Rented]:
        return [each for each in self.machines if each.run_id == run_id and not each.stray]

    @property
    def ours(self) -> list[Rented]:
        return [each for each in self.machines if not each.stray]
