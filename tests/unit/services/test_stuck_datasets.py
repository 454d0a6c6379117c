"""The sweep's part for datasets: a validation without a worker, and a version without an upload."""

from __future__ import annotations

import pytest

from tensorant.domain.datasets.report import DatasetFault
from tensorant.domain.errors import ProviderFault
from tensorant.domain.projects import MAX_RESTARTS, DatasetStatus
from tensorant.services.stuck_datasets import StuckDatasets, StuckReport
from tests.support.worlds import DATASET, NOON, ORG, World, dataset_version, later


@pytest.fixture
def stuck(world: World) -> StuckDatasets:
    return StuckDatasets(world.store, world.workers, world.clock)


def validating(world: World, **changes: object) -> None:
    fields = {"sha256": None, "rows": None, "bytes": None, "validating_since": NOON, "version": 1, **changes}
    world.store.commit(dataset_version(status=DatasetStatus.VALIDATING, **fields))


def test_a_validation_is_left_alone_for_twenty_minutes(world: World, stuck: StuckDatasets) -> None:
    validating(world)

    world.clock.forward(minutes=19, seconds=59)

    assert stuck.sweep() == StuckReport()
    assert world.workers.validations == []


def test_what_is_stuck_is_started_again(world: World, stuck: StuckDatasets) -> None:
    validating(world)
    world.clock.forward(minutes=20)

    assert stuck.sweep().restarted == [DATASET]
    assert stuck.sweep() == StuckReport()  # its new worker has time of its own

    assert world.workers.validations == [(ORG, DATASET)]
    dataset = world.store.dataset_version(ORG, DATASET)
    assert (dataset.restarts, dataset.validating_since) == (1, later(minutes=20))


def test_what_was_being_validated_before_times_were_kept_is_started_again(
    world: World, stuck: StuckDatasets
) -> None:
    validating(world, validating_since=None)
    world.clock.forward(minutes=20)

    assert stuck.sweep().restarted == [DATASET]


def test_after_three_more_tries_it_is_given_up_with_what_stood_in_the_way(
    world: World, stuck: StuckDatasets
) -> None:
    trouble = DatasetFault(line=0, field="", message="The storage is away.", mend="Check it.")
    validating(world, trouble=trouble)

    reports = []
    for _ in range(MAX_RESTARTS + 2):
        world.clock.forward(minutes=20)
        reports.append(stuck.sweep())

    assert [len(report.restarted) for report in reports] == [1, 1, 1, 0, 0]
    assert [len(report.given_up) for report in reports] == [0, 0, 0, 1, 0]
    dataset = world.store.dataset_version(ORG, DATASET)
    assert dataset.status is DatasetStatus.INVALID
    (fault,) = dataset.faults
    assert fault.message == ("The validation was started 4 times and came to no end: The storage is away.")
    assert fault.mend == "Check it."


def test_without_known_trouble_the_time_was_too_short(world: World, stuck: StuckDatasets) -> None:
    validating(world, restarts=MAX_RESTARTS)
    world.clock.forward(minutes=20)

    assert stuck.sweep().given_up == [DATASET]
    (fault,) = world.store.dataset_version(ORG, DATASET).faults
    assert fault.message == "The validation was started 4 times and came to no end in time."
    assert fault.mend.startswith("Split the file")


def test_a_version_that_nobody_completes_is_closed_after_a_day(world: World, stuck: StuckDatasets) -> None:
    fields = {"sha256": None, "rows": None, "bytes": None, "version": 1}
    world.store.commit(dataset_version(status=DatasetStatus.UPLOADING, **fields))
    world.clock.forward(days=1)
    assert stuck.sweep() == StuckReport()

    world.clock.forward(seconds=1)

    assert stuck.sweep().abandoned == [DATASET]
    (fault,) = world.store.dataset_version(ORG, DATASET).faults
    assert fault.message == "No upload was completed within a day."


def test_a_worker_that_closes_the_version_meanwhile_wins(world: World, stuck: StuckDatasets) -> None:
    validating(world)
    world.clock.forward(minutes=20)
    closed = dataset_version(version=2)
    world.store.before_next_commit(lambda: world.store.commit(closed))

    assert stuck.sweep() == StuckReport()
    assert world.store.dataset_version(ORG, DATASET).status is DatasetStatus.VALID
    assert world.workers.validations == []


def test_trouble_with_one_version_does_not_stop_the_pass(world: World, stuck: StuckDatasets) -> None:
    validating(world)
    validating(world, id="data-2", version=0)
    world.clock.forward(minutes=20)
    world.store.fail_next_commit(ProviderFault("store_failed", "The record is away.", mend="Wait."))

    report = stuck.sweep()

    assert report.troubled == {DATASET: "The record is away. Wait."}
    assert report.restarted == ["data-2"]
