"""One seed, from its schedule to the verdict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.simulation.actors import act
from tests.simulation.promises import Violation, broken
from tests.simulation.schedule import Schedule
from tests.simulation.services import Pieces
from tests.simulation.world import World


@dataclass
class Result:
    """What one schedule showed."""

    seed: int
    violations: list[Violation] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    ways: set[tuple[str, str, str]] = field(default_factory=set)
    failures: Counter[str] = field(default_factory=Counter)
    told: list[tuple[float, str]] = field(default_factory=list)


def play(seed: int, pieces: Pieces | None = None, *, recording: bool = False) -> Result:
    """Run the seed's schedule; the same seed always does the same."""
    world = World(Schedule.drawn(seed), pieces or Pieces(), recording=recording)
    try:
        world.play(act)
        return _result(world)
    finally:
        world.scheduler.close()


def _result(world: World) -> Result:
    failures: Counter[str] = Counter()
    for run in world.runs:
        stored = world.record.run(run.id)
        if stored.failure is not None:
            kept = "kept" if stored.outcome == "needs_recovery" else "gone"
            failures[f"{stored.failure.failure_class}: {kept}"] += 1
    return Result(
        seed=world.schedule.seed,
        violations=broken(world),
        calls=world.faults.calls,
        faults=world.faults.counts,
        ways=world.interpreter.ways,
        failures=failures,
        told=world.told,
    )
