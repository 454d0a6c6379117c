"""The worker that judges a staged file and copies it to the organization's storage."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator

import pytest

from tensorant.domain.errors import Storage
from tensorant.domain.projects import DatasetContent, DatasetStatus
from tensorant.services.dataset_validation import DatasetValidator
from tensorant.services.datasets import Datasets
from tests.support.worlds import DATASET, MEMBER, ORG, PROJECT, World, dataset_version

ROW = b'{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}\n'
SHA256 = hashlib.sha256(ROW * 3).hexdigest()
STAGED = "datasets/org-1/data-1"
STORED = f"projects/proj-1/datasets/{SHA256}.jsonl"
AWAY = Storage("storage_failed", "The storage is away.", mend="Wait.")


@pytest.fixture
def datasets(world: World) -> Datasets:
    return Datasets(world.store, world.staging, world.workers, world.clock, world.ids)


@pytest.fixture
def validator(world: World) -> DatasetValidator:
    return DatasetValidator(world.store, world.storages, world.staging)


def in_status(world: World, status: DatasetStatus, **changes: object) -> None:
    fresh = {"sha256": None, "rows": None, "bytes": None, "version": 1, **changes}
    world.store.commit(dataset_version(status=status, **fresh))


def second_version(world: World, content: bytes) -> None:
    """Another upload to the same project."""
    in_status(world, DatasetStatus.VALIDATING, id="data-2", version=0)
    world.staging.objects["datasets/org-1/data-2"] = content


def test_a_valid_file_is_copied_with_its_rows_and_hash(world: World, validator: DatasetValidator) -> None:
    in_status(world, DatasetStatus.VALIDATING)
    world.staging.objects[STAGED] = ROW * 3

    validator.validate(ORG, DATASET)

    stored = world.store.dataset_version(ORG, DATASET)
    assert stored.status is DatasetStatus.VALID
    assert (stored.rows, stored.bytes, stored.sha256, stored.key) == (3, 3 * len(ROW), SHA256, STORED)
    assert stored.report is not None
    assert stored.report.duplicates == 2
    assert world.storage.objects == {STORED: ROW * 3}


def test_a_compressed_file_is_stored_as_its_rows(world: World, validator: DatasetValidator) -> None:
    in_status(world, DatasetStatus.VALIDATING)
    world.staging.objects[STAGED] = gzip.compress((ROW * 3).replace(b"\n", b"\r\n"))

    validator.validate(ORG, DATASET)

    assert world.storage.objects == {STORED: ROW * 3}


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


@pytest.mark.parametrize("later", [ROW * 2, gzip.compress(ROW * 3)[:-4], b"x" * 2_000_000])
def test_a_file_that_was_replaced_in_between_is_a_fault_and_stores_nothing(
    world: World, validator: DatasetValidator, later: bytes
) -> None:
    in_status(world, DatasetStatus.VALIDATING)
    world.staging.objects[STAGED] = ROW * 3
    world.staging.later[STAGED] = later

    validator.validate(ORG, DATASET)

    closed = world.store.dataset_version(ORG, DATASET)
    assert (closed.status, closed.sha256) == (DatasetStatus.INVALID, None)
    assert [fault.message for fault in closed.faults] == [
        "The file was replaced while it was being validated."
    ]
    assert world.storage.objects == {}


@pytest.mark.parametrize("status", [DatasetStatus.UPLOADING, DatasetStatus.VALID, DatasetStatus.INVALID])
def test_only_a_version_under_validation_is_validated(
    world: World, validator: DatasetValidator, status: DatasetStatus
) -> None:
    in_status(world, status)
    world.staging.objects[STAGED] = ROW

    assert validator.validate(ORG, DATASET).status is status
    assert world.storage.objects == {}


# -- more than once ----------------------------------------------------------------------------------------


def test_two_workers_at_once_close_a_version_once(world: World, validator: DatasetValidator) -> None:
    in_status(world, DatasetStatus.VALIDATING)
    world.staging.objects[STAGED] = ROW
    world.store.before_next_commit(lambda: validator.validate(ORG, DATASET))

    assert validator.validate(ORG, DATASET).status is DatasetStatus.VALID
    assert world.store.dataset_version(ORG, DATASET).version == 4  # judged and closed, once each


def test_a_version_that_was_completed_again_in_between_is_closed_all_the_same(
    world: World, datasets: Datasets, validator: DatasetValidator
) -> None:
    in_status(world, DatasetStatus.VALIDATING)
    world.staging.objects[STAGED] = ROW * 3
    world.store.before_next_commit(lambda: datasets.complete(MEMBER, ORG, DATASET))

    validator.validate(ORG, DATASET)

    stored = world.store.dataset_version(ORG, DATASET)
    assert (stored.status, stored.key) == (DatasetStatus.VALID, STORED)


def test_a_worker_that_comes_after_a_fresh_start_leaves_the_version_to_the_other(
    world: World, datasets: Datasets, validator: DatasetValidator
) -> None:
    in_status(world, DatasetStatus.VALIDATING)
    world.staging.objects[STAGED] = ROW * 3

    class Restarting(dict[str, bytes]):
        """While the first worker writes, somebody completes the version again."""

        def __setitem__(self, key: str, value: bytes) -> None:
            super().__setitem__(key, value)
            datasets.complete(MEMBER, ORG, DATASET)

    world.storage.objects = Restarting()

    assert validator.validate(ORG, DATASET).status is DatasetStatus.VALIDATING
    assert not world.store.dataset_version(ORG, DATASET).judged


def test_a_worker_that_was_cut_off_while_it_copied_is_followed_by_one_that_only_copies(
    world: World, validator: DatasetValidator
) -> None:
    in_status(world, DatasetStatus.VALIDATING)
    world.staging.objects[STAGED] = ROW * 3
    world.storage.trouble.append(AWAY)
    with pytest.raises(Storage):
        validator.validate(ORG, DATASET)
    half_way = world.store.dataset_version(ORG, DATASET)
    reads = Counting(world.staging.objects)
    world.staging.objects = reads

    validator.validate(ORG, DATASET)

    assert (half_way.status, half_way.judged) == (DatasetStatus.VALIDATING, True)
    assert half_way.trouble is not None
    assert (half_way.trouble.message, half_way.trouble.mend) == ("The storage is away.", "Wait.")
    closed = world.store.dataset_version(ORG, DATASET)
    assert (closed.status, closed.trouble, closed.rows) == (DatasetStatus.VALID, None, 3)
    assert world.storage.objects == {STORED: ROW * 3}
    assert reads.read == 1


class Counting(dict[str, bytes]):
    """How often an object was read."""

    read = 0

    def __getitem__(self, key: str) -> bytes:
        self.read += 1
        return super().__getitem__(key)


def test_trouble_while_reading_the_staged_file_is_no_fault_of_the_file(
    world: World, validator: DatasetValidator
) -> None:
    in_status(world, DatasetStatus.VALIDATING)

    def breaks_off() -> Iterator[bytes]:
        yield ROW
        raise AWAY

    world.staging.stream = lambda _key: breaks_off()  # type: ignore[method-assign]

    with pytest.raises(Storage):
        validator.validate(ORG, DATASET)
    stored = world.store.dataset_version(ORG, DATASET)
    assert (stored.status, stored.judged, stored.faults) == (DatasetStatus.VALIDATING, False, ())


# -- the same content --------------------------------------------------------------------------------------


def test_the_same_content_is_the_same_version_of_the_project(
    world: World, validator: DatasetValidator
) -> None:
    in_status(world, DatasetStatus.VALIDATING)
    world.staging.objects[STAGED] = ROW * 3
    validator.validate(ORG, DATASET)
    second_version(world, gzip.compress(ROW * 3))

    validator.validate(ORG, "data-2")

    second = world.store.dataset_version(ORG, "data-2")
    assert (second.status, second.same_as, second.key) == (DatasetStatus.VALID, DATASET, STORED)
    assert world.store.dataset_version(ORG, DATASET).same_as is None
    assert list(world.storage.objects) == [STORED]


def test_of_two_versions_validated_at_once_the_slower_is_the_same_as_the_faster(
    world: World, validator: DatasetValidator
) -> None:
    in_status(world, DatasetStatus.VALIDATING)
    world.staging.objects[STAGED] = ROW * 3
    second_version(world, ROW * 3)
    claim = DatasetContent(organization_id=ORG, project_id=PROJECT, sha256=SHA256, version_id="data-2")
    find = world.store.dataset_content

    def faster(project_id: str, sha256: str) -> DatasetContent | None:
        """Nobody has the content when it is looked up, and somebody when it is written."""
        found = find(project_id, sha256)
        if found is None:
            world.store.before_next_commit(lambda: world.store.commit(claim))
        return found

    world.store.dataset_content = faster  # type: ignore[method-assign]

    assert validator.validate(ORG, DATASET).same_as == "data-2"


def test_uploading_the_same_again_heals_a_copy_that_was_lost(
    world: World, validator: DatasetValidator
) -> None:
    in_status(world, DatasetStatus.VALIDATING)
    world.staging.objects[STAGED] = ROW * 3
    validator.validate(ORG, DATASET)
    world.storage.objects.clear()
    second_version(world, ROW * 3)

    validator.validate(ORG, "data-2")

    assert world.storage.objects == {STORED: ROW * 3}


def test_a_version_from_before_keeps_its_place() -> None:
    keys = {dataset_version(sha256=each * 64).key for each in "ab"}

    assert keys == {
        f"projects/proj-1/datasets/data-1-{'a' * 64}.jsonl",
        f"projects/proj-1/datasets/data-1-{'b' * 64}.jsonl",
    }
