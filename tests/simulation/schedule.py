"""What one seed decides before anything happens: the jobs, the provider's manners, the faults, the people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any

from tests.simulation.faults import Profile
from tests.simulation.provider import Manners
from tests.support.worlds import G5, G6

HOUR = 3600.0
QUIET_SECONDS = 9 * HOUR
"""How long a schedule goes on after its faults have ceased: longer than any limit, window and back-off."""
SWEEP_SECONDS = 900.0


@dataclass(frozen=True)
class Act:
    """Something that a person, or chance, does at a moment."""

    at: float
    what: str
    run: int


@dataclass(frozen=True)
class Schedule:
    seed: int
    marketplace: bool
    drafts: tuple[dict[str, Any], ...]
    acts: tuple[Act, ...]
    profile: Profile
    manners: Manners
    skew_seconds: float
    faults_end: float
    price: Decimal

    @property
    def end(self) -> float:
        return self.faults_end + QUIET_SECONDS

    @classmethod
    def drawn(cls, seed: int) -> Schedule:
        random = Random(seed)
        faults_end = random.choice([1, 2, 3, 4]) * HOUR
        runs = random.choice([1, 1, 2, 2, 3])
        launches = tuple(random.uniform(0, 600) for _ in range(runs))
        return cls(
            seed=seed,
            marketplace=random.random() < 0.25,
            drafts=tuple(_draft(random) for _ in range(runs)),
            acts=_acts(random, launches, faults_end),
            profile=Profile.drawn(random, until=faults_end),
            manners=replace(_manners(random), takes_back=_takes_back(seed)),
            skew_seconds=random.choice([0, 0, 1, 20]),
            faults_end=faults_end,
            price=random.choice([Decimal("0.8048")] * 19 + [Decimal("3.5")]),
        )


def _draft(random: Random) -> dict[str, Any]:
    return {
        "instance_types": random.choice([(G6,), (G6, G5)]),
        "time_limit_minutes": random.choice([20, 45, 90]),
        "price_limit_usd_per_hour": random.choice([Decimal("0.9"), Decimal(2), Decimal(2)]),
    }


def _manners(random: Random) -> Manners:
    return Manners(
        boot_seconds=random.choice([(5, 60), (5, 60), (60, 400)]),
        change_seconds=random.choice([(2, 60), (30, 600)]),
        lag_seconds=random.choice([0, 5, 40]),
        event_lost=random.choice([0, 0.1, 1]),
        event_doubled=random.choice([0, 0.2]),
        event_delay_seconds=random.choice([2, 60, 600]),
        refuses=random.choice([0, 0, 0, 0.2, 0.6]),
    )


def _takes_back(seed: int) -> float:
    """Drawn by itself, so that it changes nothing else of a seed's schedule."""
    return Random(f"{seed}/takes back").choice([0, 0, 0, 0.3, 0.7])


OFTEN = ("launch", "cancel", "cancel_keep", "cancel_discard", "discard", "retry_release")
SELDOM = (
    "restart",
    "stop_outside",
    "terminate_outside",
    "vanish",
    "stop_execution",
    "redrive",
    "expire_key",
    "rotate_key",
    "other_account",
    "lock_tags",
    "unlock_tags",
    "recover",
    "raise_price",
    "stray_operation",
    "stray_machine",
    "check",
)


def _acts(random: Random, launches: tuple[float, ...], until: float) -> tuple[Act, ...]:
    acts = [Act(at, "launch", run) for run, at in enumerate(launches)]
    for _ in range(random.choice([0, 1, 2, 4, 8, 16])):
        run = random.randrange(len(launches))
        what = random.choice(OFTEN if random.random() < 0.4 else SELDOM)
        at = launches[run] + random.choice([60, 600, until - launches[run]]) * random.random()
        acts.append(Act(at, what, run))
        if what in {"terminate_outside", "cancel", "stop_execution"} and random.random() < 0.3:
            acts.append(Act(at + random.random() * 60, random.choice(OFTEN), run))
    return tuple(sorted(acts, key=lambda act: act.at))
