"""The first rows of a valid version."""

from __future__ import annotations

import json

import pytest

from tensorant.domain.errors import Conflict, NotFound
from tensorant.domain.projects import DatasetStatus
from tensorant.services.dataset_previews import PREVIEW_BYTES, DatasetPreviews
from tests.support.worlds import DATASET, MEMBER, ORG, STRANGER, World, dataset_version


@pytest.fixture
def previews(world: World) -> DatasetPreviews:
    return DatasetPreviews(world.store, world.storages)


def stored(world: World, *rows: object) -> None:
    lines = [json.dumps(row).encode() + b"\n" for row in rows]
    world.store.commit(dataset_version(rows=len(lines), stored_key="k", version=1))
    world.storage.objects["k"] = b"".join(lines)


def test_the_first_rows_are_shown(world: World, previews: DatasetPreviews) -> None:
    stored(world, {"text": "a"}, {"text": "b"}, {"text": "c"})

    preview = previews.preview(MEMBER, ORG, DATASET, rows=2)

    assert (preview.rows, preview.more) == ([{"text": "a"}, {"text": "b"}], True)


def test_a_short_version_is_shown_whole(world: World, previews: DatasetPreviews) -> None:
    stored(world, {"text": "a"})

    preview = previews.preview(MEMBER, ORG, DATASET, rows=5)

    assert (preview.rows, preview.more) == ([{"text": "a"}], False)


def test_of_long_rows_only_whole_ones_are_shown(world: World, previews: DatasetPreviews) -> None:
    world.storage.chunk = 1 << 20
    long = {"text": "x" * 900_000}
    stored(world, long, long, long)

    preview = previews.preview(MEMBER, ORG, DATASET, rows=3)

    assert PREVIEW_BYTES < 2 * 900_000
    assert (preview.rows, preview.more) == ([long], True)


def test_a_version_of_known_content_shows_that(world: World, previews: DatasetPreviews) -> None:
    stored(world, {"text": "a"})
    world.store.commit(dataset_version(id="data-2", same_as=DATASET))

    assert previews.preview(MEMBER, ORG, "data-2", rows=1).rows == [{"text": "a"}]


def test_what_is_gone_from_the_storage_is_told(world: World, previews: DatasetPreviews) -> None:
    with pytest.raises(Conflict) as caught:
        previews.preview(MEMBER, ORG, DATASET, rows=1)
    assert caught.value.code == "dataset_missing"


def test_only_a_valid_version_has_a_preview(world: World, previews: DatasetPreviews) -> None:
    world.store.commit(dataset_version(status=DatasetStatus.INVALID, version=1))

    with pytest.raises(Conflict):
        previews.preview(MEMBER, ORG, DATASET, rows=1)


def test_a_stranger_finds_nothing(previews: DatasetPreviews) -> None:
    with pytest.raises(NotFound):
        previews.preview(STRANGER, ORG, DATASET, rows=1)
