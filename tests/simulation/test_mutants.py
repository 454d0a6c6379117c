"""The simulator can fail: every deliberate bug breaks a promise within the seeds that `make simulate` plays."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.play import play

LIMIT = 1000
CATCHES: dict[str, tuple[int, ...]] = {
    "AsksInAnyAccount": (81, 182, 271),
    "NoIntent": (2, 16, 52),
    "RandomToken": (3, 11, 12),
    "NextWhileInDoubt": (12, 20, 56),
    "RetryBesideTimedOut": (8, 282, 294),
    "PriceUnchecked": (30, 108, 119),
    "ErrorIsGone": (10, 11, 15),
    "ForeignAccountBelieved": (13, 15, 65),
    "NoLease": (3, 8, 10),
    "ReleaseAssumed": (0, 5, 8),
    "ReleaseBeforeVerifying": (0, 10, 13),
    "NothingIsKept": (1, 3, 5),
    "NextBeforeGone": (16, 34, 46),
    "GoalLowered": (50, 93, 98),
    "OutcomeOverwritten": (3, 4, 12),
    "HeartbeatIsProgress": (79, 85, 126),
    "Unconditional": (32, 68, 101),
    "EarlySignalDropped": (3, 5, 9),
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
