"""Reading a file by range, and the cache of its edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tensorant.verification import CHUNK_BYTES, FileArchive, verify
from tensorant.verification.archive import EDGE_BYTES, EdgeCache
from tests.support.archives import adapter_archive
from tests.support.verdicts import BytesArchive, expected

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_verified_in_place(tmp_path: Path) -> None:
    path = tmp_path / "adapter.zip"
    path.write_bytes(adapter_archive())

    with FileArchive(path) as archive:
        assert verify(archive, expected()).sound


def test_a_file_is_streamed_in_chunks(tmp_path: Path) -> None:
    path = tmp_path / "archive"
    data = bytes(range(256)) * 4096 + b"and some more"
    path.write_bytes(data)

    with FileArchive(path) as archive:
        chunks = list(archive.stream(0, archive.size))
        assert archive.size == len(data)
        assert [len(chunk) for chunk in chunks] == [CHUNK_BYTES, 13]
        assert b"".join(chunks) == data
        assert archive.read(255, 3) == b"\xff\x00\x01"
        assert archive.read(len(data) - 4, 100) == b"more"


def test_a_missing_file_is_an_error_of_its_source(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileArchive(tmp_path / "adapter.zip")


def test_edges_are_read_once() -> None:
    source = BytesArchive(bytes(range(256)) * 1024)
    cache = EdgeCache(source)

    near_the_start = [cache.read(at, 10) for at in (0, 300, EDGE_BYTES - 10)]
    near_the_end = [cache.read(cache.size - at, 10) for at in (10, 300, EDGE_BYTES)]

    assert near_the_start == [source.data[at : at + 10] for at in (0, 300, EDGE_BYTES - 10)]
    assert near_the_end == [source.data[cache.size - at :][:10] for at in (10, 300, EDGE_BYTES)]
    assert source.reads == 2


def test_what_lies_between_the_edges_is_read_from_the_source() -> None:
    source = BytesArchive(bytes(range(256)) * 1024)
    cache = EdgeCache(source)

    assert cache.read(EDGE_BYTES - 5, 10) == source.data[EDGE_BYTES - 5 :][:10]
    assert source.reads == 1
