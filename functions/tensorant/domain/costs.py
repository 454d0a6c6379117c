"""What a machine has cost so far, from its quote and the provider's own times."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from tensorant.domain.machines import Machine
from tensorant.domain.quotes import rounded

MINIMUM_BILLED = timedelta(seconds=60)
"""EC2 bills each start per second, for at least a minute (AWS: On-Demand pricing)."""

SECONDS_PER_HOUR = Decimal(3600)


def cost(machine: Machine, *, now: datetime) -> Decimal:
    """US dollars: compute while running, disk until the machine is gone.

    Counts one running period. Transfer, NAT and taxes are in nobody's quote and not in here.
    """
    if machine.started_at is None:
        return Decimal(0)
    ran = max(MINIMUM_BILLED, (machine.ran_until or now) - machine.started_at)
    existed = (machine.confirmed_gone_at or now) - machine.started_at
    compute = machine.quote.compute_usd_per_hour * _hours(ran)
    return rounded(compute + machine.quote.disk_usd_per_hour * _hours(existed))


def _hours(period: timedelta) -> Decimal:
    return Decimal(str(max(0.0, period.total_seconds()))) / SECONDS_PER_HOUR
