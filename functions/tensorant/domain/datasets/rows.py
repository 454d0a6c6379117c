"""Lines of a dataset in their normal form: what is hashed, compared, stored and trained on.

The normal form of a file is its rows without the blanks around them, each ended by one line feed. So line ends
of Windows and a last line without an end make no other content, and neither does the compression.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

MAX_ROW_BYTES = 1_000_000

_BLANKS = b" \t\r"
"""What JSON allows around a value, but for the line feed."""


def rows(chunks: Iterable[bytes]) -> Iterator[Sequence[bytes]]:
    """Rows in batches, as they come. A row longer than `MAX_ROW_BYTES` comes cut, and longer than that still."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_ROW_BYTES:
            rest = _cut(rest)
        if lines:
            yield [line.strip(_BLANKS) for line in lines]
    if rest:
        yield [rest.strip(_BLANKS)]


def _cut(rest: bytes) -> bytes:
    """Blanks in front are dropped first: they do not count, however many they are."""
    return rest.lstrip(_BLANKS)[: MAX_ROW_BYTES + 1]


def joined(batch: Sequence[bytes]) -> bytes:
    """A batch as its bytes in the normal form."""
    return b"\n".join(batch) + b"\n"
