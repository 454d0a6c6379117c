"""Many seeds on every core, and what they covered: `python -m tests.simulation.run --seeds 2000`.

Prints counts; a broken promise prints its schedule's timeline and the command that replays it, and exits 1.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tensorant.domain.errors import FailureClass
from tensorant.domain.failures import NOTHING_TO_KEEP
from tests.simulation.play import Result, play
from tests.simulation.schedule import Schedule
from tests.simulation.world import definition

CHUNK = 20
SHOWN_LINES = 400
ENOUGH_BROKEN = 20
NEVER_TAKEN = frozenset({("DecideNext", "StopMachine", "default")})
"""No step names anything else: there for what nobody has thought of (see test_interpreter)."""
NEVER_ENDS = frozenset({f"{FailureClass.THROTTLED}: kept"})
"""A throttled call is repeated; a run that breaks off over it has been interrupted: provider_fault."""


@dataclass
class Totals:
    """Counts over all schedules that were played."""

    schedules: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    ways: set[tuple[str, str, str]] = field(default_factory=set)
    failures: Counter[str] = field(default_factory=Counter)
    broken: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        self.schedules += 1
        self.calls += result.calls
        self.faults += result.faults
        self.ways |= result.ways
        self.failures += result.failures
        if result.violations:
            self.broken.append(result)


def totals(seeds: Sequence[int], *, processes: int | None = None) -> Totals:
    """Play every seed; stops early once a handful of schedules broke a promise."""
    found = Totals()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for result in pool.imap_unordered(play, seeds, chunksize=CHUNK):
            found.add(result)
            if len(found.broken) >= ENOUGH_BROKEN:
                pool.terminate()
                break
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.run", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="how many schedules, from seed 0")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="replay this one and print its timeline")
    asked = parser.parse_args(arguments)
    if asked.seed is not None:
        result = play(asked.seed, recording=True)
        say("\n".join(timeline(result)))
        return 1 if result.violations else 0
    began = time.monotonic()
    found = totals(range(asked.first, asked.first + asked.seeds))
    say("\n".join(report(found, seconds=time.monotonic() - began)))
    return 1 if found.broken else 0


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


# -- words -------------------------------------------------------------------------------------------------


def report(found: Totals, *, seconds: float) -> Iterable[str]:
    yield f"{found.schedules:,} schedules in {seconds:.0f} s, {sum(found.calls.values()):,} port calls"
    yield f"  by port: {_counted(found.calls)}"
    yield f"  faults: {_counted(found.faults)}"
    yield from _covered_ways(found)
    yield from _covered_failures(found)
    if not found.broken:
        yield "No promise was broken."
        return
    for result in sorted(found.broken, key=lambda each: each.seed):
        for violation in result.violations:
            yield f"BROKEN seed {result.seed}: {violation}"
    first = min(found.broken, key=lambda each: each.seed)
    yield from timeline(play(first.seed, recording=True))


def _covered_ways(found: Totals) -> Iterable[str]:
    every = definition().ways - NEVER_TAKEN
    missed = sorted(f"{start} → {end} ({how})" for start, end, how in every - found.ways)
    yield f"  transitions: {len(every & found.ways)} of {len(every)}"
    if missed:
        yield f"    not taken: {', '.join(missed)}"


def _covered_failures(found: Totals) -> Iterable[str]:
    every = {f"{each}: {'gone' if each in NOTHING_TO_KEEP else 'kept'}" for each in FailureClass}
    every -= NEVER_ENDS
    yield f"  failure table: {len(every & found.failures.keys())} of {len(every)} rows"
    yield f"    {_counted(found.failures)}"
    if missed := every - found.failures.keys():
        yield f"    not met: {', '.join(sorted(missed))}"


def timeline(result: Result) -> Iterable[str]:
    schedule = Schedule.drawn(result.seed)
    kind = "marketplace" if schedule.marketplace else "tokens"
    yield f"\nSeed {result.seed}: {kind}, {len(schedule.drafts)} runs, {schedule.manners}"
    lines = [f"{_clock(at)}  {text}" for at, text in result.told]
    if len(lines) > SHOWN_LINES:
        lines = [
            *lines[: SHOWN_LINES // 2],
            f"… {len(lines) - SHOWN_LINES} lines …",
            *lines[-SHOWN_LINES // 2 :],
        ]
    yield from lines
    for violation in result.violations:
        yield f"BROKEN {violation}"
    yield f"Replay with: make simulate SEED={result.seed}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours:2}:{minutes:02}:{rest:04.1f}"


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"


if __name__ == "__main__":
    gc.freeze()
    sys.exit(main())
