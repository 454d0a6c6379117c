"""Where an archive's bytes come from: a file here, ranges of an object elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from tensorant.verification.faults import Code, unsound

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNK_BYTES = 1 << 20
"""The size to stream by. Larger chunks leave the processor's cache and are slower."""

EDGE_BYTES = 1 << 16


class Archive(Protocol):
    """Bytes at rest, read by range. They must not change while they are examined (pin object versions).

    Raises what its source raises; fewer bytes than asked for mean that the archive ends early.
    """

    @property
    def size(self) -> int:
        """Bytes in all."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """A small range, whole."""
        ...

    def stream(self, offset: int, length: int) -> Iterator[bytes]:
        """A range of any length in chunks of about `CHUNK_BYTES`."""
        ...


class FileArchive:
    """An archive on disk. A context manager; raises OSError."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self._size = self._file.seek(0, 2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    @property
    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        return b"".join(self.stream(offset, length))

    def stream(self, offset: int, length: int) -> Iterator[bytes]:
        end = offset + length
        while offset < end:
            self._file.seek(offset)
            chunk = self._file.read(min(end - offset, CHUNK_BYTES))
            if not chunk:
                return
            offset += len(chunk)
            yield chunk


class EdgeCache:
    """An archive whose first and last 64 KiB are read once: most headers lie there, and a range costs a request."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._edges: dict[int, bytes] = {}

    @property
    def size(self) -> int:
        return self._archive.size

    def read(self, offset: int, length: int) -> bytes:
        for edge in (max(0, self.size - EDGE_BYTES), 0):
            if edge <= offset and offset + length <= min(edge + EDGE_BYTES, self.size):
                return self._edge(edge)[offset - edge :][:length]
        return self._archive.read(offset, length)

    def stream(self, offset: int, length: int) -> Iterator[bytes]:
        return self._archive.stream(offset, length)

    def _edge(self, offset: int) -> bytes:
        if offset not in self._edges:
            length = min(EDGE_BYTES, self.size - offset)
            self._edges[offset] = self._archive.read(offset, length)
        return self._edges[offset]


def read_exactly(archive: Archive, offset: int, length: int) -> bytes:
    """The range, whole. A range outside the archive, or a source with fewer bytes than its size, is a fault."""
    if not 0 <= offset <= archive.size - length:
        raise unsound(
            Code.ZIP_DIRECTORY,
            f"The archive points to {length} bytes at {offset}, outside its {archive.size}.",
        )
    data = archive.read(offset, length)
    if len(data) != length:
        raise unsound(Code.ARCHIVE_SIZE, f"The archive has fewer than its {archive.size} bytes.")
    return data
