"""Cutting a stream of chunks where known sections of it end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

T = TypeVar("T")


@dataclass(frozen=True)
class Section(Generic[T]):
    """From the end of the section before to `end`, an offset in the stream."""

    end: int
    owner: T


class Cutter(Generic[T]):
    """Gives the pieces of each chunk with the owners of their sections. Bytes after the last section belong to none."""

    def __init__(self, sections: Sequence[Section[T]]) -> None:
        self._sections = iter(sections)
        self._current = next(self._sections, None)
        self._at = 0

    def cut(self, chunk: bytes) -> Iterator[tuple[T, bytes]]:
        start = 0
        while self._current is not None and start < len(chunk):
            section = self._current
            length = min(section.end - self._at, len(chunk) - start)
            if length:
                yield section.owner, chunk if length == len(chunk) else chunk[start : start + length]
            start += length
            self._at += length
            if self._at == section.end:
                self._current = next(self._sections, None)
