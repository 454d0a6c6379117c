"""What a machine has cost so far, from its quote and the provider's own times."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from tensorant.domain.machines import Machine, billed_seconds
from tensorant.domain.quotes import rounded

SECONDS_PER_HOUR = Decimal(3600)


def cost(machine: Machine, *, now: datetime) -> Decimal:
    """US dollars: compute while running, every start billed for itself, and disk until the machine is gone.

    Transfer, NAT and taxes are in nobody's quote and not in here.
    """
    if machine.started_at is None or machine.first_started_at is None:
        return Decimal(0)
    ran = machine.ran_seconds_before + billed_seconds(machine.started_at, machine.ran_until or now)
    existed = (machine.confirmed_gone_at or now) - machine.first_started_at
    compute = machine.quote.compute_usd_per_hour * _hours(ran)
    return rounded(compute + machine.quote.disk_usd_per_hour * _hours(existed.total_seconds()))


def _hours(seconds: float) -> Decimal:
    return Decimal(str(max(0.0, seconds))) / SECONDS_PER_HOUR
