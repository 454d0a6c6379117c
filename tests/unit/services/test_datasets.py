"""Dataset versions: uploaded to staging, validated on the way to the organization's storage."""

from __future__ import annotations

import hashlib

import pytest

from tensorant.domain.errors import Conflict, NotFound
from tensorant.domain.projects import DatasetStatus
from tensorant.services.datasets import Datasets, DatasetValidator, valid_version
from tests.support.worlds import DATASET, MEMBER, ORG, PROJECT, STRANGER, World, dataset_version

ROW = b'{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}\n'
STAGED = "datasets/org-1/data-1"
STORED = f"projects/proj-1/datasets/data-1-{hashlib.sha256(ROW * 3).hexdigest()}.jsonl"


@pytest.fixture
def datasets(world: World) -> Datasets:
    return Datasets(world.store, world.staging, world.workers, world.clock, world.ids)


@pytest.fixture
def validator(world: World) -> DatasetValidator:
    return DatasetValidator(world.store, world.storages, world.staging)


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


def test_a_valid_file_is_copied_with_its_rows_and_hash(world: World, validator: DatasetValidator) -> None:
    in_status(world, DatasetStatus.VALIDATING)
    world.staging.objects[STAGED] = ROW * 3

    validator.validate(ORG, DATASET)

    stored = world.store.dataset_version(ORG, DATASET)
    assert stored.status is DatasetStatus.VALID
    assert (stored.rows, stored.bytes) == (3, 3 * len(ROW))
    assert stored.sha256 == hashlib.sha256(ROW * 3).hexdigest()
    assert world.storage.objects[STORED] == ROW * 3


def test_a_faulty_file_is_not_copied(world: World, validator: DatasetValidator) -> None:
    in_status(world, DatasetStatus.VALIDATING)
    world.staging.objects[STAGED] = ROW + b"nonsense\n"

    validator.validate(ORG, DATASET)

    stored = world.store.dataset_version(ORG, DATASET)
    assert stored.status is DatasetStatus.INVALID
    assert [fault.line for fault in stored.faults] == [2]
    assert world.storage.objects == {}


def test_a_file_that_was_never_uploaded_is_a_fault(world: World, validator: DatasetValidator) -> None:
    in_status(world, DatasetStatus.VALIDATING)

    validator.validate(ORG, DATASET)

    (fault,) = world.store.dataset_version(ORG, DATASET).faults
    assert fault.message == "Nothing was uploaded."


def test_a_file_that_was_replaced_in_between_is_a_fault(world: World, validator: DatasetValidator) -> None:
    in_status(world, DatasetStatus.VALIDATING)
    world.staging.objects[STAGED] = ROW
    world.staging.later[STAGED] = ROW * 2

    validator.validate(ORG, DATASET)

    assert world.store.dataset_version(ORG, DATASET).status is DatasetStatus.INVALID


@pytest.mark.parametrize("status", [DatasetStatus.UPLOADING, DatasetStatus.VALID, DatasetStatus.INVALID])
def test_only_a_version_under_validation_is_validated(
    world: World, validator: DatasetValidator, status: DatasetStatus
) -> None:
    in_status(world, status)
    world.staging.objects[STAGED] = ROW

    assert validator.validate(ORG, DATASET).status is status
    assert world.storage.objects == {}


def test_two_workers_at_once_close_a_version_once(world: World, validator: DatasetValidator) -> None:
    in_status(world, DatasetStatus.VALIDATING)
    world.staging.objects[STAGED] = ROW
    world.store.before_next_commit(lambda: validator.validate(ORG, DATASET))

    assert validator.validate(ORG, DATASET).status is DatasetStatus.VALID
    assert world.store.dataset_version(ORG, DATASET).version == 3


def test_a_version_that_was_completed_again_in_between_is_closed_all_the_same(
    world: World, datasets: Datasets, validator: DatasetValidator
) -> None:
    in_status(world, DatasetStatus.VALIDATING)
    world.staging.objects[STAGED] = ROW * 3
    world.store.before_next_commit(lambda: datasets.complete(MEMBER, ORG, DATASET))

    validator.validate(ORG, DATASET)

    stored = world.store.dataset_version(ORG, DATASET)
    assert (stored.status, stored.version) == (DatasetStatus.VALID, 4)
    assert stored.key == STORED


def test_other_content_lies_under_another_key() -> None:
    keys = {dataset_version(sha256=each * 64).key for each in "ab"}

    assert keys == {
        f"projects/proj-1/datasets/data-1-{'a' * 64}.jsonl",
        f"projects/proj-1/datasets/data-1-{'b' * 64}.jsonl",
    }


@pytest.mark.parametrize("status", [DatasetStatus.UPLOADING, DatasetStatus.VALIDATING, DatasetStatus.INVALID])
def test_only_a_valid_version_may_be_trained_on(world: World, status: DatasetStatus) -> None:
    in_status(world, status)

    with pytest.raises(Conflict) as caught:
        valid_version(ORG, DATASET, store=world.store)
    assert (caught.value.code, caught.value.field) == ("dataset_not_valid", "dataset_version_id")


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
