"""The simulator can fail: every deliberate bug breaks a promise within the seeds that `make simulate` plays."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.play import play

LIMIT = 1000
CATCHES: dict[str, tuple[int, ...]] = {
    "AsksInAnyAccount": (182, 380, 444),
    "NoIntent": (11, 16, 25),
    "RandomToken": (3, 5, 8),
    "NextWhileInDoubt": (20, 56, 86),
    "RetryBesideTimedOut": (20, 153, 400),
    "PriceUnchecked": (30, 108, 119),
    "ErrorIsGone": (15, 29, 67),
    "ForeignAccountBelieved": (15, 65, 71),
    "NoLease": (10, 48, 49),
    "ReleaseAssumed": (0, 1, 3),
    "ReleaseBeforeVerifying": (0, 10, 16),
    "NothingIsKept": (3, 9, 10),
    "GoalLowered": (50, 98, 99),
    "OutcomeOverwritten": (4, 12, 13),
    "HeartbeatIsProgress": (9, 79, 126),
    "Unconditional": (32, 136, 194),
    "EarlySignalDropped": (3, 5, 8),
    "NoSweep": (1, 8, 11),
}
"""Seeds that caught each bug when this was written: tried first, so that the test is quick."""


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_deliberate_bug_is_caught(name: str) -> None:
    mutant = MUTANTS[name]
    remembered = CATCHES.get(name, ())
    others = (seed for seed in range(LIMIT) if seed not in remembered)

    caught = any(play(seed, mutant()).violations for seed in (*remembered, *others))

    assert caught, f"{name}: {mutant.__doc__}"


def test_what_catches_them_is_the_bug_alone() -> None:
    seeds = {seed for caught in CATCHES.values() for seed in caught[:1]}

    assert not [seed for seed in seeds if play(seed).violations]
