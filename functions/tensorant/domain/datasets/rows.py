"""Lines of a dataset in their normal form: what is hashed, compared, stored and trained on.

The normal form of a file is its rows without the blanks around them, each ended by one line feed. So line ends
of Windows and a last line without an end make no other content, and neither does the compression.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

MAX_ROW_BYTES = 1_000_000
"""Of a line without its line feed; blanks count, so that it does not matter how the line arrives."""

TOO_LONG = b"x" * (MAX_ROW_BYTES + 1)
"""Stands for any longer row, of which no more is kept than that."""

_BLANKS = b" \t\r"
"""What JSON allows around a value, but for the line feed."""


def rows(chunks: Iterable[bytes]) -> Iterator[Sequence[bytes]]:
    """Rows in batches, as they come: each at most `MAX_ROW_BYTES` long, or `TOO_LONG`."""
    begun = _Line()
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        begun.add(first)
        if not others:
            continue
        *lines, rest = others
        yield [begun.row(), *(_row(line) for line in lines)]
        begun = _Line()
        begun.add(rest)
    if begun.size:
        yield [begun.row()]


def _row(line: bytes) -> bytes:
    return line.strip(_BLANKS) if len(line) <= MAX_ROW_BYTES else TOO_LONG


@dataclass
class _Line:
    """A line of which the end has not come yet. Its pieces are joined once, however small they are."""

    size: int = 0
    _pieces: list[bytes] = field(default_factory=list)

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size <= MAX_ROW_BYTES:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def row(self) -> bytes:
        return TOO_LONG if self.size > MAX_ROW_BYTES else _row(b"".join(self._pieces))


def joined(batch: Sequence[bytes]) -> bytes:
    """A batch as its bytes in the normal form."""
    return b"\n".join(batch) + b"\n"
