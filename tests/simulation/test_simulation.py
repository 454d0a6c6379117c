"""The promises on 200 schedules; `make simulate SEEDS=2000` plays more of them, on every core."""

from __future__ import annotations

import pytest

from tests.simulation.play import play
from tests.simulation.run import Totals, main, report, timeline
from tests.simulation.schedule import Schedule

SEEDS = 200
BLOCKS = 10


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_promise_is_broken(block: int) -> None:
    first = block * SEEDS // BLOCKS
    for seed in range(first, first + SEEDS // BLOCKS):
        result = play(seed)
        if result.violations:
            pytest.fail("\n".join(timeline(play(seed, recording=True))))


def test_a_seed_always_does_the_same() -> None:
    first, second = play(7, recording=True), play(7, recording=True)

    assert first.told == second.told
    assert first.calls == second.calls


def test_schedules_differ() -> None:
    schedules = [Schedule.drawn(seed) for seed in range(100)]

    assert {each.marketplace for each in schedules} == {True, False}
    assert len({each.profile for each in schedules}) > 80
    assert {act.what for each in schedules for act in each.acts} > {"launch", "cancel_keep", "redrive"}


def test_the_report_names_what_was_covered() -> None:
    found = Totals()
    for seed in range(5):
        found.add(play(seed))

    text = "\n".join(report(found, seconds=1))

    assert "5 schedules" in text
    assert "transitions: " in text
    assert "failure table: " in text
    assert "No promise was broken." in text


def test_one_seed_is_replayed_with_its_timeline(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "1"]) == 0

    printed = capsys.readouterr().out
    assert "Seed 1: " in printed
    assert "someone: launch run-1" in printed
    assert "Replay with: make simulate SEED=1" in printed
