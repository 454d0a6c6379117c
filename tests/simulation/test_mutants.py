"""The simulator can fail: every deliberate bug breaks a promise within the seeds that `make simulate` plays."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.play import play

LIMIT = 1000
CATCHES: dict[str, tuple[int, ...]] = {}
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
