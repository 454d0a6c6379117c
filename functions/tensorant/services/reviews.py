"""Reviewing a run before its launch: what it would cost now, and what stands against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from tensorant.domain.connections import CheckVerdict, Connection
from tensorant.domain.errors import Conflict, Price, Rejected, TensorantError
from tensorant.domain.identity import Actor
from tensorant.domain.quotas import VcpuQuota
from tensorant.domain.quotes import Quote
from tensorant.domain.runs import Run
from tensorant.ports import Clock, Computes, Store
from tensorant.services.access import run_of
from tensorant.services.drafts import ready_compute, ready_storage
from tensorant.services.quotes import current_quotes


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What stands against launching. One that does not block is tried all the same."""

    code: str
    message: str
    mend: str
    field: str | None
    blocking: bool

    @classmethod
    def of(cls, error: TensorantError, *, blocking: bool = True, field: str | None = None) -> Problem:
        return cls(
            code=error.code,
            message=error.message,
            mend=error.mend,
            field=field or error.field,
            blocking=blocking,
        )


@dataclass(frozen=True, kw_only=True)
class Review:
    """A drafted run with the quotes of this moment, in its order of types, and what stands against launching it."""

    run: Run
    at: datetime
    quotes: tuple[Quote, ...]
    quote: Quote
    """Of the type that would be asked for first."""
    quota: VcpuQuota
    """Of that type's family."""
    problems: tuple[Problem, ...]

    @property
    def within_limit(self) -> bool:
        return self.within(self.quote)

    def within(self, quote: Quote) -> bool:
        return quote.within(self.run.draft.price_limit_usd_per_hour)

    @property
    def most_usd(self) -> Decimal:
        """What the machine costs at most until the time limit, whichever acceptable type it is."""
        affordable = [each for each in self.quotes if self.within(each)] or [self.quote]
        return max(each.usd_for(self.run.draft.time_limit) for each in affordable)


@dataclass(frozen=True)
class Reviews:
    store: Store
    computes: Computes
    clock: Clock

    def review(self, actor: Actor, organization_id: str, run_id: str) -> Review:
        """Recheck prices, quota, credentials and connections. Reserves nothing.

        Raises `Conflict` if the connection is not ready, `Price` if no acceptable type has a price.
        """
        run = run_of(organization_id, run_id, actor, store=self.store)
        connection = ready_compute(organization_id, run.draft.connection_id, store=self.store)
        compute = self.computes.open(connection)
        found = current_quotes(run.draft, connection, compute=compute, clock=self.clock)
        quotes = tuple(each for each in found.values() if isinstance(each, Quote))
        limit = run.draft.price_limit_usd_per_hour
        quote = next((each for each in quotes if each.within(limit)), None) or _first(found)
        quota = compute.quota(quote.instance_type)
        now = self.clock.now()
        problems = (
            *_price_problems(found, quote, limit),
            *self._readiness_problems(run, connection, now),
            *_quota_problems(quote.instance_type, quota),
            *_warnings(connection, now),
        )
        return Review(run=run, at=now, quotes=quotes, quote=quote, quota=quota, problems=problems)

    def _readiness_problems(self, run: Run, connection: Connection, now: datetime) -> Iterator[Problem]:
        needed_until = run.credentials_needed_until(now)
        try:
            connection.require_credentials_until(needed_until)
        except Conflict as expiring:
            yield Problem.of(expiring)
        try:
            storage = ready_storage(run.organization_id, run.storage_connection_id, store=self.store)
            storage.require_credentials_until(needed_until, named_by="project_id")
        except Rejected as unready:
            yield Problem.of(unready)


def _first(found: Mapping[str, Quote | Price]) -> Quote:
    """The first that has a price. Raises the first type's `Price` if none has."""
    for each in found.values():
        if isinstance(each, Quote):
            return each
    raise next(each for each in found.values() if isinstance(each, Price))


def _price_problems(found: Mapping[str, Quote | Price], chosen: Quote, limit: Decimal) -> Iterator[Problem]:
    """Types without a price, and too dear ones, are passed over; if nothing else is left they block."""
    nothing_left = not chosen.within(limit)
    for number, each in enumerate(found.values()):
        field = f"instance_types[{number}]"
        if isinstance(each, Price):
            yield Problem.of(each, blocking=nothing_left, field=field)
        elif not each.within(limit):
            yield Problem.of(each.above(limit), blocking=nothing_left)


def _quota_problems(instance_type: str, quota: VcpuQuota) -> Iterator[Problem]:
    """A warning only: what is in use may be free again by the launch."""
    if quota.suffices is False:
        yield Problem(
            code="quota_insufficient",
            message=f"{instance_type} takes {quota.needed} vCPUs of the quota {quota.family} ({quota.code}), and "
            f"{quota.headroom} of {quota.limit} are free.",
            mend="Request more vCPUs in Service Quotas, or free some, before launching.",
            field="instance_types",
            blocking=False,
        )


def _warnings(connection: Connection, now: datetime) -> Iterator[Problem]:
    for notice in connection.warnings(now):
        yield _warning(notice.code, notice.message, notice.mend)
    for item in connection.checks:
        if item.verdict is CheckVerdict.WARNING:
            yield _warning(f"connection_{item.name}", item.seen, item.mend)


def _warning(code: str, message: str, mend: str) -> Problem:
    return Problem(code=code, message=message, mend=mend, field="connection_id", blocking=False)
