"""Providers behind the Compute port, over one set of books.

`TokenProvider` is like EC2: an ask carries a client token, and the same token makes one machine; what was
made is not seen at once, readings may be old, events may be dropped, doubled and late, a terminated machine
stays visible for an hour. `MarketProvider` is like Vast.ai: no tokens, offers vanish, a machine that was
destroyed or whose host died is missing at once, and replies lie (an error although it was rented).

What the marketplace connector must add before its model may be rougher: today the model itself sees to it
that a record makes one machine, as the port promises. It looks up the label and rents in one step, and
remembers labels of machines that are long gone, so that an ask that arrives late rents nothing again. A real
marketplace does neither; it takes the conditional *asking* item whose lease outlives the function and what it
had under way (design section 4), the look-up by label after it, and the destruction of duplicates. Then
`MarketProvider.rent` may pause between the two and forget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from random import Random

from tensorant.adapters.ec2 import state_reasons
from tensorant.domain.errors import (
    Capacity,
    Credentials,
    Credit,
    Permission,
    Price,
    ProviderFault,
    Quota,
)
from tensorant.domain.machines import Call, Machine, Observation, Seen
from tensorant.ports import ComputeCheck, CurrentPrice, Listed
from tests.simulation.books import FORGOTTEN_AFTER_SECONDS, Books, Period, Rented
from tests.simulation.faults import Faults
from tests.simulation.scheduler import Scheduler
from tests.support.fakes.compute import GOOD_CHECK

LAUNCH_REASONS = [
    "Server.InsufficientInstanceCapacity: no capacity",
    "Client.VolumeLimitExceeded: too many volumes",
    "Client.InternalError: key not usable",
    "Server.InternalError: try again",
]
"""Why a machine may end before it ran (EC2: instance state reason codes)."""
NO_CAPACITY = [
    "Server.InsufficientInstanceCapacity: There was insufficient capacity",
    "Server.InternalError: Server.InsufficientInstanceCapacity",
]
"""As EC2 says of a machine that it made and then has no room for; code and message may disagree."""
USUAL_PRICE = Decimal("0.8048")
DISK_PER_GIB_MONTH = Decimal("0.08")


@dataclass(frozen=True)
class Manners:
    """How a provider behaves in one schedule."""

    boot_seconds: tuple[float, float] = (5.0, 60.0)
    change_seconds: tuple[float, float] = (2.0, 60.0)
    lag_seconds: float = 0.0
    """How old a reading may be, and how long a new machine stays unseen."""
    event_lost: float = 0.0
    event_doubled: float = 0.0
    event_delay_seconds: float = 5.0
    refuses: float = 0.0
    """The chance that a type in a subnet is not to be had at a moment."""
    takes_back: float = 0.0
    """The chance that a machine which was made is ended while it boots, for want of capacity."""


@dataclass(eq=False)
class Provider:
    """All accounts of one provider."""

    scheduler: Scheduler
    random: Random
    faults: Faults
    books: Books
    manners: Manners
    keys: dict[str, str] = field(default_factory=dict)
    """Access key → account; a key that is not here is refused."""
    prices: dict[str, Decimal] = field(default_factory=dict)
    powered_on: Callable[[Rented], object] = lambda _: None
    announced: Callable[[Rented], object] = lambda _: None
    watched: Callable[[Rented, str], str] = lambda _machine, _call: ""
    """Told of every order of ours before it acts; what it answers is kept in the books."""

    # -- asking ------------------------------------------------------------------------------------------

    def rent(self, machine: Machine, user_data: str, account: str) -> Rented:
        raise NotImplementedError

    def _refuse(self, machine: Machine) -> None:
        if self.faults.chance("capacity", self.manners.refuses):
            kind = self.random.choice([Capacity, Capacity, Capacity, Quota, Credit, Price])
            raise kind("not_to_be_had", f"No {machine.candidate.instance_type} here now.")

    def _make(self, machine: Machine, user_data: str, account: str, *, lag: float) -> Rented:
        price = self.prices.get(machine.candidate.instance_type, USUAL_PRICE)
        rented = self.books.make(machine, user_data, account, price, lag=lag)
        if self.faults.chance("launch_failed", self.manners.refuses / 3):
            reason = self.random.choice(LAUNCH_REASONS)
            fails = partial(self.enter, rented, Seen.GONE, reason)
            self._later(rented, self.manners.boot_seconds, Seen.PENDING, fails)
        elif self.faults.chance("capacity_after_launch", self.manners.takes_back):
            self._later(rented, self.manners.boot_seconds, Seen.PENDING, partial(self._take_back, rented))
        else:
            self.boot(rented)
        return rented

    def _take_back(self, rented: Rented) -> None:
        reason = self.random.choice(NO_CAPACITY)
        self.enter(rented, Seen.SHUTTING_DOWN, reason)
        gone = partial(self.enter, rented, Seen.GONE, reason)
        self._later(rented, self.manners.change_seconds, Seen.SHUTTING_DOWN, gone)

    def boot(self, rented: Rented) -> None:
        self._later(rented, self.manners.boot_seconds, Seen.PENDING, partial(self._runs, rented))

    def _runs(self, rented: Rented) -> None:
        self.enter(rented, Seen.RUNNING)
        self.powered_on(rented)

    def enter(self, rented: Rented, state: Seen, reason: str = "") -> None:
        self.books.enter(rented, state, reason)
        self.announced(rented)
        if state is Seen.GONE:
            self.scheduler.after(FORGOTTEN_AFTER_SECONDS, partial(setattr, rented, "forgotten", True))

    def _later(
        self, rented: Rented, within: tuple[float, float], state: Seen, action: Callable[[], object]
    ) -> None:
        """If it is still in that state by then."""
        entered = len(rented.history)

        def act() -> None:
            if rented.state is state and len(rented.history) == entered:
                action()

        self.scheduler.after(self.random.uniform(*within), act)

    # -- orders ------------------------------------------------------------------------------------------

    def stop(self, rented: Rented, by: str, reason: str = "") -> None:
        """As StopInstances: for running machines only; the disk stays."""
        self.books.order(rented, "stop", by)
        if rented.state is Seen.RUNNING:
            self.enter(rented, Seen.STOPPING, reason)
            stopped = partial(self.enter, rented, Seen.STOPPED, reason)
            self._later(rented, self.manners.change_seconds, Seen.STOPPING, stopped)

    def terminate(self, rented: Rented, by: str, reason: str = "", note: str = "") -> None:
        self.books.order(rented, "terminate", by, note)
        if rented.state in {Seen.GONE, Seen.SHUTTING_DOWN}:
            return
        self.enter(rented, Seen.SHUTTING_DOWN, reason)
        gone = partial(self.enter, rented, Seen.GONE, reason)
        self._later(rented, self.manners.change_seconds, Seen.SHUTTING_DOWN, gone)

    def start(self, rented: Rented, by: str) -> bool:
        """As StartInstances, by its owner; ours never does."""
        if rented.state is not Seen.STOPPED:
            return False
        self.books.order(rented, "start", by)
        rented.periods.append(Period(self.scheduler.now))
        self.enter(rented, Seen.PENDING)
        self.boot(rented)
        return True

    def vanish(self, rented: Rented) -> None:
        """The provider loses the machine."""
        if rented.alive:
            self.books.order(rented, "vanish", "provider")
            self.enter(rented, Seen.GONE, "Server.InternalError")

    # -- reading -----------------------------------------------------------------------------------------

    def visible(self, rented: Rented) -> bool:
        return not rented.forgotten and self.scheduler.now >= rented.visible_at

    def account_of(self, key: str) -> str:
        account = self.keys.get(key)
        if account is None:
            raise Credentials("AuthFailure", "The key is not valid.", mend="Replace the credentials.")
        return account

    def reading(self, rented: Rented) -> Seen:
        if not self.faults.active or not self.manners.lag_seconds:
            return rented.state
        lag = self.random.random() * self.manners.lag_seconds
        return rented.state_at(self.scheduler.now - lag) or Seen.PENDING


class TokenProvider(Provider):
    """The same token makes one machine, whoever asks at whatever moment."""

    def rent(self, machine: Machine, user_data: str, account: str) -> Rented:
        for rented in self.books.machines:
            if (rented.account, rented.token) == (account, machine.client_token):
                if rented.user_data != user_data:
                    raise ProviderFault("IdempotentParameterMismatch", "The token was used in other words.")
                return rented
        self._refuse(machine)
        return self._make(
            machine, user_data, account, lag=self.random.random() * self.manners.lag_seconds * 2
        )


class MarketProvider(Provider):
    """No tokens: the machine of a record is found by its label."""

    def rent(self, machine: Machine, user_data: str, account: str) -> Rented:
        for rented in self.books.machines:
            if (rented.account, rented.token) == (account, machine.client_token):
                return rented
        self._refuse(machine)
        rented = self._make(machine, user_data, account, lag=0.0)
        if self.faults.chance("reply_lies", self.manners.refuses):
            raise ProviderFault("no_such_ask", "The offer is no longer available.")
        return rented

    def enter(self, rented: Rented, state: Seen, reason: str = "") -> None:
        super().enter(rented, state, reason)
        if state is Seen.GONE:
            rented.forgotten = True


@dataclass(frozen=True)
class Session:
    """`ports.Compute` with one key, as it was when the connection was opened."""

    provider: Provider
    key: str

    def check(self, settings: object) -> ComputeCheck:
        account = self.provider.account_of(self.key)
        return ComputeCheck(items=GOOD_CHECK.items, account_id=account, image=GOOD_CHECK.image)

    def prices(self, instance_types: Sequence[str]) -> dict[str, CurrentPrice]:
        self.provider.account_of(self.key)
        return {
            each: CurrentPrice(
                compute_usd_per_hour=self.provider.prices.get(each, USUAL_PRICE),
                disk_usd_per_gib_month=DISK_PER_GIB_MONTH,
            )
            for each in instance_types
        }

    def ask(self, machine: Machine, *, user_data: str) -> Observation:
        account = self.provider.account_of(self.key)
        if account != machine.account_id:
            raise Credentials("other_account", f"The credentials are of account {account}.")
        rented = self.provider.rent(machine, user_data, account)
        return self._observation(rented, self.provider.reading(rented))

    def observe(self, machine: Machine) -> Observation:
        account = self.provider.account_of(self.key)
        rented = self._find(machine, account)
        if rented is None or not self.provider.visible(rented):
            return Observation(state=Seen.MISSING, account_id=account)
        return self._observation(rented, self.provider.reading(rented))

    def make(self, call: Call, machine: Machine) -> None:
        rented = self._find(machine, self.provider.account_of(self.key))
        if machine.instance_id is None or rented is None or rented.forgotten:
            return
        if rented.locked:
            mend = "Restore the tag tensorant:managed=true on the instance."
            raise Permission("UnauthorizedOperation", f"{call} {rented.id} was refused.", mend=mend)
        note = self.provider.watched(rented, call.value)
        if call is Call.STOP:
            self.provider.stop(rented, "tensorant")
        else:
            self.provider.terminate(rented, "tensorant", note=note)

    def listed(self, deployment_id: str) -> list[Listed]:
        """What carries the deployment's tags, is visible and not gone."""
        account = self.provider.account_of(self.key)
        return [
            Listed(
                observation=self._observation(rented, self.provider.reading(rented)),
                client_token=rented.token or None,
                run_id=rented.tags.get("tensorant:run"),
                attempt=int(rented.tags.get("tensorant:attempt", "0")) or None,
            )
            for rented in self.provider.books.machines
            if (rented.account, rented.tags.get("tensorant:deployment")) == (account, deployment_id)
            and self.provider.visible(rented)
            and rented.alive
            and not rented.locked
        ]

    def stop(self, instance_id: str) -> None:
        account = self.provider.account_of(self.key)
        for rented in self.provider.books.machines:
            if (rented.id, rented.account) == (instance_id, account):
                self.provider.watched(rented, "stop, unknown")
                self.provider.stop(rented, "tensorant")

    def _find(self, machine: Machine, account: str) -> Rented | None:
        for rented in self.provider.books.machines:
            same = (
                rented.id == machine.instance_id
                if machine.instance_id
                else rented.token == machine.client_token
            )
            if same and rented.account == account:
                return rented
        return None

    def _observation(self, rented: Rented, state: Seen) -> Observation:
        ending = state in {Seen.SHUTTING_DOWN, Seen.GONE}
        return Observation(
            state=state,
            instance_id=rented.id,
            started_at=self.provider.scheduler.moment_at(rented.started_at),
            reason=rented.reason,
            cause=state_reasons.cause(rented.reason),
            never_ran_because=state_reasons.launch_failure(rented.id, rented.reason) if ending else None,
        )
