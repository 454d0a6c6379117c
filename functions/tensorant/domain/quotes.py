"""What an hour of a machine costs, all in, and whether it may be spent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from tensorant.domain.errors import Price

HOURS_PER_MONTH = Decimal(730)
"""AWS's own divisor for monthly rates (seed: "the monthly storage rate divided by 730")."""

EXCLUDED = ("NAT gateway", "data transfer", "taxes", "account-specific discounts")

CENT_OF_CENT = Decimal("0.0001")

HOLDS = timedelta(minutes=15)
"""How long a price that was read is good enough to ask for another machine at it."""

SECONDS_PER_HOUR = Decimal(3600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a quote: what it is, and how it comes about."""

    name: str
    usd_per_hour: Decimal
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """US dollars per hour, and its parts."""

    instance_type: str
    compute_usd_per_hour: Decimal
    disk_usd_per_hour: Decimal
    disk_gib: int
    priced_at: datetime
    disk_usd_per_gib_month: Decimal | None = None
    """The monthly rate behind the disk's part."""
    excluded: tuple[str, ...] = EXCLUDED

    @property
    def usd_per_hour(self) -> Decimal:
        return self.compute_usd_per_hour + self.disk_usd_per_hour

    @property
    def parts(self) -> tuple[Part, ...]:
        rate = f" at ${self.disk_usd_per_gib_month} a GiB-month" if self.disk_usd_per_gib_month else ""
        return (
            Part(
                name="compute",
                usd_per_hour=self.compute_usd_per_hour,
                basis=f"{self.instance_type}, Linux, on demand",
            ),
            Part(
                name="disk",
                usd_per_hour=self.disk_usd_per_hour,
                basis=f"{self.disk_gib} GiB of gp3{rate}, over {HOURS_PER_MONTH} hours",
            ),
        )

    def age(self, now: datetime) -> timedelta:
        """Since the prices were read."""
        return max(timedelta(0), now - self.priced_at)

    def holds(self, now: datetime) -> bool:
        return self.age(now) <= HOLDS

    def usd_for(self, period: timedelta) -> Decimal:
        """What so long a time costs, all in."""
        return rounded(self.usd_per_hour * Decimal(str(period.total_seconds())) / SECONDS_PER_HOUR)

    def within(self, limit: Decimal) -> bool:
        return self.usd_per_hour <= limit

    def above(self, limit: Decimal) -> Price:
        """Why it may not be spent."""
        return Price(
            "price_above_limit",
            f"{self.instance_type} costs ${self.usd_per_hour} an hour, above the limit of ${limit}.",
            mend="Raise the run's price limit or choose a cheaper GPU type.",
            field="price_limit_usd_per_hour",
        )

    def require_within(self, limit: Decimal) -> None:
        """Raises `Price` if an hour costs more than `limit` US dollars."""
        if not self.within(limit):
            raise self.above(limit)


def quote(
    instance_type: str,
    *,
    compute_usd_per_hour: Decimal | None,
    disk_usd_per_gib_month: Decimal | None,
    disk_gib: int,
    priced_at: datetime,
) -> Quote:
    """The all-in quote. Raises `Price` if a part is unknown: a price is never guessed."""
    if compute_usd_per_hour is None or disk_usd_per_gib_month is None:
        unknown = instance_type if compute_usd_per_hour is None else "gp3 storage"
        raise Price(
            "price_unknown",
            f"The provider gives no single on-demand price for {unknown} in this region.",
            mend="Check the connection again, or choose another GPU type.",
            field="instance_type",
        )
    return Quote(
        instance_type=instance_type,
        compute_usd_per_hour=compute_usd_per_hour,
        disk_usd_per_hour=rounded(disk_usd_per_gib_month * disk_gib / HOURS_PER_MONTH),
        disk_gib=disk_gib,
        disk_usd_per_gib_month=disk_usd_per_gib_month,
        priced_at=priced_at,
    )


def rounded(usd: Decimal) -> Decimal:
    """To a hundredth of a cent, halves up, as invoices do."""
    return usd.quantize(CENT_OF_CENT, rounding=ROUND_HALF_UP)
