"""Dataset versions as members meet them."""

from __future__ import annotations

import pytest

from tensorant.domain.errors import Conflict, NotFound
from tensorant.domain.projects import DatasetStatus
from tensorant.services.datasets import Datasets, valid_version
from tests.support.worlds import DATASET, MEMBER, NOON, ORG, PROJECT, STRANGER, World, dataset_version


@pytest.fixture
def datasets(world: World) -> Datasets:
    return Datasets(world.store, world.staging, world.workers, world.clock, world.ids)


def in_status(world: World, status: DatasetStatus) -> None:
    world.store.commit(dataset_version(status=status, sha256=None, rows=None, bytes=None, version=1))


def test_a_version_waits_for_its_file(world: World, datasets: Datasets) -> None:
    upload = datasets.create(MEMBER, ORG, PROJECT, name="chats")

    assert upload.dataset.status is DatasetStatus.UPLOADING
    assert upload.url == "memory://staging/datasets/org-1/data-101?seconds=3600"


def test_completing_starts_the_validation(world: World, datasets: Datasets) -> None:
    in_status(world, DatasetStatus.UPLOADING)

    assert datasets.complete(MEMBER, ORG, DATASET).status is DatasetStatus.VALIDATING
    assert world.workers.validations == [(ORG, DATASET)]


def test_completing_again_while_validating_starts_it_again(world: World, datasets: Datasets) -> None:
    in_status(world, DatasetStatus.UPLOADING)

    datasets.complete(MEMBER, ORG, DATASET)
    datasets.complete(MEMBER, ORG, DATASET)

    assert world.workers.validations == [(ORG, DATASET), (ORG, DATASET)]


@pytest.mark.parametrize("status", [DatasetStatus.VALID, DatasetStatus.INVALID])
def test_a_closed_version_is_not_completed_again(
    world: World, datasets: Datasets, status: DatasetStatus
) -> None:
    in_status(world, status)

    with pytest.raises(Conflict) as caught:
        datasets.complete(MEMBER, ORG, DATASET)
    assert caught.value.code == "dataset_version_closed"


@pytest.mark.parametrize("status", [DatasetStatus.UPLOADING, DatasetStatus.VALIDATING, DatasetStatus.INVALID])
def test_only_a_valid_version_may_be_trained_on(world: World, status: DatasetStatus) -> None:
    in_status(world, status)

    with pytest.raises(Conflict) as caught:
        valid_version(ORG, DATASET, store=world.store)
    assert (caught.value.code, caught.value.field) == ("dataset_not_valid", "dataset_version_id")


def test_completing_again_forgets_what_another_file_was_found_to_be(world: World, datasets: Datasets) -> None:
    judged = dataset_version(status=DatasetStatus.VALIDATING, restarts=2, stored_key="k", version=1)
    world.store.commit(judged)

    dataset = datasets.complete(MEMBER, ORG, DATASET)

    assert (dataset.judged, dataset.restarts, dataset.validating_since) == (False, 0, NOON)


def test_a_version_of_known_content_is_the_one_that_had_it_first(world: World, datasets: Datasets) -> None:
    world.store.commit(dataset_version(id="data-2", same_as=DATASET))

    assert valid_version(ORG, "data-2", store=world.store).id == DATASET
    assert [each.id for each in datasets.list(MEMBER, ORG, PROJECT)] == [DATASET]
    assert datasets.show(MEMBER, ORG, "data-2").same_as == DATASET


def test_versions_are_listed_by_project(datasets: Datasets) -> None:
    assert [each.id for each in datasets.list(MEMBER, ORG, PROJECT)] == [DATASET]


def test_a_stranger_finds_nothing(datasets: Datasets) -> None:
    for ask in (
        lambda: datasets.create(STRANGER, ORG, PROJECT, name="x"),
        lambda: datasets.complete(STRANGER, ORG, DATASET),
        lambda: datasets.show(STRANGER, ORG, DATASET),
        lambda: datasets.list(STRANGER, ORG, PROJECT),
    ):
        with pytest.raises(NotFound):
            ask()
