"""Counting rows in bounded memory: estimated tokens, how long rows are, how many come twice."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from tensorant.domain.datasets.report import Lengths
from tensorant.domain.datasets.rows import MAX_ROW_BYTES

BYTES_PER_TOKEN = 4
MESSAGE_TOKENS = 4
"""What a chat template puts around a message: markers, the role, a line end."""

MAX_COMPARED = 8_000_000
"""Rows among which duplicates are looked for: their hashes need 64 MB at most."""
_SHELVES = 256


def tokens(text: int, messages: int) -> int:
    """About how many tokens a row becomes: one for four bytes of UTF-8, and four for each message.

    Four bytes are what tokenizers of current models make of English text; code and other scripts differ by up
    to a half. Nothing is decided by it.
    """
    return -(-text // BYTES_PER_TOKEN) + MESSAGE_TOKENS * messages


@dataclass
class Tally:
    """Exact, in memory that does not grow with the file but for eight bytes a row, up to `MAX_COMPARED`."""

    rows: int = 0
    tokens: int = 0
    _lengths: array[int] = field(default_factory=lambda: array("I", [0]) * (MAX_ROW_BYTES + 1))
    _shelves: Sequence[array[int]] = field(default_factory=lambda: [array("q") for _ in range(_SHELVES)])

    def count(self, line: bytes, text: int, messages: int) -> None:
        length = tokens(text, messages)
        self.rows += 1
        self.tokens += length
        self._lengths[length] += 1
        if self.rows <= MAX_COMPARED:
            # Python's hash of bytes: 64 bits under a key of this process. Among 8 million rows two different
            # ones have the same with a probability of 2e-6.
            digest = hash(line)
            self._shelves[digest & (_SHELVES - 1)].append(digest)

    @property
    def compared(self) -> int:
        return min(self.rows, MAX_COMPARED)

    def duplicates(self) -> int:
        """Rows that came before, shelf by shelf, so that only one shelf is a set at a time."""
        return sum(len(shelf) - len(set(shelf)) for shelf in self._shelves)

    def lengths(self) -> Lengths:
        """By nearest rank. There must be a row."""
        half, nine, ninety_nine, longest = self._at([(1, 2), (9, 10), (99, 100), (1, 1)])
        return Lengths(half=half, nine_in_ten=nine, ninety_nine_in_hundred=ninety_nine, longest=longest)

    def _at(self, shares: Sequence[tuple[int, int]]) -> list[int]:
        """For each share, which must rise, the shortest length that as many rows do not exceed."""
        found, below, lengths = [], 0, enumerate(self._lengths)
        length = 0
        for part, whole in shares:
            wanted = -(-self.rows * part // whole)
            while below < wanted:
                length, count = next(lengths)
                below += count
            found.append(length)
        return found
