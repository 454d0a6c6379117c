"""One pass over a dataset, in bounded memory: what is wrong with it, or what it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tensorant.domain.datasets.compression import Plain, UnreadableError
from tensorant.domain.datasets.faults import RowError
from tensorant.domain.datasets.formats import SHAPES, judged
from tensorant.domain.datasets.report import DatasetFault, DatasetReport, RowFormat
from tensorant.domain.datasets.rows import MAX_ROW_BYTES, joined, rows
from tensorant.domain.datasets.seen import Seen
from tensorant.domain.datasets.strict_json import parse
from tensorant.domain.datasets.tally import Tally

MAX_FAULTS = 100

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
"""Byte order marks of UTF-16 and UTF-32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A dataset without faults. Hash and size are of its normal form."""

    sha256: str
    rows: int
    bytes: int
    report: DatasetReport


def judge(source: Iterable[bytes]) -> Content | tuple[DatasetFault, ...]:
    """Read a file as it was brought; answer what it is, or its faults: the first hundred, or what ended the reading."""
    reading = _Reading(Plain(source))
    try:
        return reading.content()
    except UnreadableError as error:
        return (*reading.faults, error.fault)[:MAX_FAULTS]
    except _EnoughError:
        return tuple(reading.faults)


def normal_form(source: Iterable[bytes]) -> Iterator[bytes]:
    """A file without faults in the form that is stored. Raises `UnreadableError`."""
    for batch in rows(Plain(source).chunks()):
        yield joined(batch)


class _EnoughError(Exception):
    """More faults help nobody."""


@dataclass
class _Reading:
    plain: Plain
    faults: list[DatasetFault] = field(default_factory=list)
    seen: Seen = field(default_factory=Seen)
    tally: Tally = field(default_factory=Tally)
    line: int = 0

    def content(self) -> Content | tuple[DatasetFault, ...]:
        """Raises `UnreadableError` and `_EnoughError`."""
        digest, size = hashlib.sha256(), 0
        for batch in rows(self.plain.chunks()):
            self._judge(batch)
            normal = joined(batch)
            digest.update(normal)
            size += len(normal)
        if not self.line:
            self._refuse(RowError("", "The file has no rows.", SHAPES))
        if self.faults or self.seen.format is None:
            return tuple(self.faults)
        report = self._report(self.seen.format)
        return Content(sha256=digest.hexdigest(), rows=self.tally.rows, bytes=size, report=report)

    def _judge(self, batch: Sequence[bytes]) -> None:
        """The inner loop: everything here is paid for every row."""
        seen, count = self.seen, self.tally.count
        for line in batch:
            self.line += 1
            try:
                _require_row(line, first=self.line == 1)
                count(line, *judged(parse(line), seen))
            except RowError as error:
                self._refuse(error)

    def _refuse(self, error: RowError) -> None:
        fault = DatasetFault(line=self.line, field=error.field, message=error.message, mend=error.mend)
        self.faults.append(fault)
        if len(self.faults) == MAX_FAULTS:
            raise _EnoughError

    def _report(self, row_format: RowFormat) -> DatasetReport:
        tally, seen = self.tally, self.seen
        return DatasetReport(
            format=row_format,
            compression=self.plain.compression,
            uploaded_bytes=self.plain.taken,
            tokens=tally.tokens,
            lengths=tally.lengths(),
            roles={role: count for role, count in seen.roles.items() if count},
            tool_rows=seen.tool_rows,
            duplicates=tally.duplicates(),
            compared_rows=tally.compared,
            unused_fields=tuple(seen.unused),
        )


def _require_row(line: bytes, *, first: bool) -> None:
    """Raises `RowError`, or `UnreadableError` where no other row will be better."""
    if not line:
        raise RowError("", "The row is empty.", "Remove the empty line.")
    if len(line) > MAX_ROW_BYTES:
        message = f"The row is longer than {MAX_ROW_BYTES:,} bytes."
        raise RowError("", message, "Split it into shorter rows.")
    if not first:
        return
    if line.startswith(_BYTE_ORDER_MARK):
        mend = "Save the file as UTF-8 without it."
        raise RowError("", "The file begins with a byte order mark.", mend)
    if line.startswith(_OTHER_ENCODINGS):
        raise UnreadableError("The file is UTF-16 or UTF-32.", "Save it as UTF-8.", line=1)
