"""A disk that somebody has changed to outlive its machine."""

from __future__ import annotations

import pytest

from tensorant.domain.machines import Machine, Observation, RootVolume, Seen
from tensorant.domain.timeline import Fact
from tensorant.domain.volumes import VOLUME_KEPT, kept_volumes, newly_kept, told_kept, told_left_over
from tests.support.worlds import NOON, later, machine

GOES = RootVolume(volume_id="vol-1", deleted_on_termination=True)
STAYS = RootVolume(volume_id="vol-1", deleted_on_termination=False)


def with_disk(volume: RootVolume | None) -> Machine:
    return machine(instance_id="i-1", seen=Seen.RUNNING, root_volume=volume)


def released(volume: RootVolume | None) -> Machine:
    return with_disk(volume).observed(Observation(state=Seen.GONE), at=later(hours=1))


@pytest.mark.parametrize(("before", "told"), [(None, True), (GOES, True), (STAYS, False)])
def test_a_change_is_news_once(before: RootVolume | None, *, told: bool) -> None:
    assert newly_kept(with_disk(before), with_disk(STAYS)) is told


@pytest.mark.parametrize("volume", [None, GOES])
def test_a_disk_that_goes_with_its_machine_is_no_news(volume: RootVolume | None) -> None:
    assert not newly_kept(with_disk(STAYS), with_disk(volume))
    assert (told_kept(with_disk(volume)), told_left_over(released(volume))) == ("", "")


def test_what_stays_is_named_with_the_mend() -> None:
    assert "vol-1 of the machine i-1 will not go with it" in told_kept(with_disk(STAYS))
    assert "delete the disk by hand" in told_kept(with_disk(STAYS))


def test_a_released_machines_disk_stays_on_its_record_though_nobody_sees_it_any_more() -> None:
    assert released(STAYS).left_over_volume == STAYS
    # $0.08 a GiB-month for 145 GiB, over 730 hours
    assert "The disk vol-1 was left behind" in told_left_over(released(STAYS))
    assert "$0.0159 an hour" in told_left_over(released(STAYS))


def test_while_the_machine_is_there_nothing_is_left_over() -> None:
    assert with_disk(STAYS).left_over_volume is None
    assert told_left_over(with_disk(STAYS)) == ""


def fact(number: int, kind: str = VOLUME_KEPT, attempt: int = 1) -> Fact:
    return Fact(run_id="run-1", id=f"fact-{number}", at=NOON, kind=kind, source="provider", attempt=attempt)


def test_the_last_word_of_each_disk_that_stays_is_a_warning() -> None:
    facts = [fact(1), fact(2), fact(3, kind="machine_running"), fact(4, attempt=2)]

    assert kept_volumes(facts, [released(STAYS)]) == (facts[1],)
    assert kept_volumes(facts, [with_disk(GOES)]) == ()
