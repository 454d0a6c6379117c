"""The central directory, entry by entry, and what an entry may be.

Source of the layouts: PKWARE APPNOTE 6.3.10, sections 4.3.12 and 4.5.
"""

from __future__ import annotations

import stat
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tensorant.verification.archive import read_exactly
from tensorant.verification.faults import Code, shown, unsound
from tensorant.verification.zip_end import SATURATED_32
from tensorant.verification.zip_names import check_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorant.verification.archive import Archive
    from tensorant.verification.zip_end import Directory

STORED = 0
DEFLATED = 8

HAS_DESCRIPTOR = 1 << 3
_ENCRYPTION_FLAGS = 1 << 0 | 1 << 6 | 1 << 13
_KNOWN_FLAGS = 1 << 1 | 1 << 2 | HAS_DESCRIPTOR | 1 << 11
"""Deflate's level, sizes after the data, and UTF-8 names."""

MAX_VERSION = 45
"""Of the format that a reader must know; zip64 came with 4.5."""
MAX_ENTRIES = 64
MAX_DIRECTORY_BYTES = MAX_ENTRIES << 10
MAX_RATIO = 20
MAX_WEIGHTS_BYTES = 64 << 30
MAX_FILE_BYTES = 64 << 20
"""Of any file but the weights; the largest tokenizers are about half of it."""
WEIGHTS_SUFFIX = ".safetensors"

_CENTRAL = struct.Struct("<4s2xBx2H4x3L4H2x2L")
_CENTRAL_SIGNATURE = b"PK\x01\x02"
_ZIP64_EXTRA = 0x0001
_PLAIN_EXTRAS = frozenset({_ZIP64_EXTRA, 0x000A, 0x5455, 0x5855, 0x7855, 0x7875})
"""Zip64 sizes; times and owners as NTFS and Info-ZIP write them. None of them changes name or content."""


class _Record(NamedTuple):
    """`_CENTRAL`'s fields; the writer's version, dates and internal attributes are skipped."""

    signature: bytes
    version: int
    flags: int
    method: int
    crc: int
    packed_size: int
    size: int
    name_length: int
    extra_length: int
    comment_length: int
    disk: int
    attributes: int
    offset: int

    @property
    def variable_length(self) -> int:
        return self.name_length + self.extra_length + self.comment_length


@dataclass(frozen=True)
class Entry:
    """One file as the central directory states it. Offsets and sizes in bytes."""

    name: str
    flags: int
    method: int
    crc: int
    packed_size: int
    size: int
    local_offset: int


def read_entries(archive: Archive, directory: Directory) -> tuple[Entry, ...]:
    """Parse the whole directory and refuse what an adapter archive never has. In the directory's order."""
    if directory.entries > MAX_ENTRIES:
        raise unsound(Code.ZIP_ENTRIES, f"The archive has {directory.entries} entries, over {MAX_ENTRIES}.")
    if directory.length > MAX_DIRECTORY_BYTES:
        raise unsound(Code.ZIP_DIRECTORY, f"The directory has {directory.length} bytes.")
    data = read_exactly(archive, directory.offset, directory.length)
    entries = tuple(_parsed(data, directory.entries))
    check_names([entry.name for entry in entries])
    for entry in entries:
        _check_content(entry)
    return entries


def _parsed(data: bytes, count: int) -> Iterator[Entry]:
    at = 0
    for _ in range(count):
        fields = data[at : at + _CENTRAL.size]
        if len(fields) < _CENTRAL.size or fields[:4] != _CENTRAL_SIGNATURE:
            raise unsound(Code.ZIP_DIRECTORY, f"The directory breaks off at its byte {at}.")
        record = _Record._make(_CENTRAL.unpack(fields))
        variable = data[at + _CENTRAL.size :][: record.variable_length]
        if len(variable) < record.variable_length:
            raise unsound(Code.ZIP_DIRECTORY, f"The directory breaks off in the entry at its byte {at}.")
        yield _entry(record, variable)
        at += _CENTRAL.size + record.variable_length
    if at != len(data):
        raise unsound(Code.ZIP_DIRECTORY, f"The directory has more than its {count} entries.")


def _entry(record: _Record, variable: bytes) -> Entry:
    name = _ascii_name(variable[: record.name_length])
    extra = variable[record.name_length :][: record.extra_length]
    if record.comment_length:
        raise unsound(Code.ZIP_COMMENT, f"{shown(name)} has a comment.")
    if record.disk:
        raise unsound(Code.ZIP_DISKS, f"{shown(name)} claims to lie in another part of the archive.")
    _check_kind(name, record)
    size, packed_size, offset = zip64_values(extra, (record.size, record.packed_size, record.offset), name)
    return Entry(name, record.flags, record.method, record.crc, packed_size, size, offset)


def _ascii_name(raw: bytes) -> str:
    try:
        return raw.decode("ascii")
    except UnicodeDecodeError as error:
        raise unsound(Code.ZIP_NAMES, f"The name {shown(raw)} is not ASCII.") from error


def _check_kind(name: str, record: _Record) -> None:
    """The attributes hold a Unix mode in their upper half; writers without one leave the file type 0."""
    if record.flags & _ENCRYPTION_FLAGS:
        raise unsound(Code.ZIP_ENCRYPTED, f"{shown(name)} is encrypted.")
    if record.flags & ~_KNOWN_FLAGS or record.version > MAX_VERSION:
        raise unsound(Code.ZIP_METHOD, f"{shown(name)} needs a feature of zip that adapters never use.")
    if record.method not in (STORED, DEFLATED):
        raise unsound(Code.ZIP_METHOD, f"{shown(name)} is compressed by method {record.method}.")
    if stat.S_IFMT(record.attributes >> 16) not in (0, stat.S_IFREG):
        raise unsound(Code.ZIP_NOT_REGULAR, f"{shown(name)} is a link or another special file.")


def _check_content(entry: Entry) -> None:
    limit = MAX_WEIGHTS_BYTES if entry.name.endswith(WEIGHTS_SUFFIX) else MAX_FILE_BYTES
    if max(entry.size, entry.packed_size) > limit:
        raise unsound(Code.ZIP_TOO_LARGE, f"{entry.name} has {entry.size} bytes, over {limit}.")
    if entry.method == STORED and entry.size != entry.packed_size:
        raise unsound(Code.ZIP_DIRECTORY, f"{entry.name} is stored, but with two sizes.")
    if entry.size > MAX_RATIO * entry.packed_size:
        raise unsound(Code.ZIP_RATIO, f"{entry.name} is compressed by more than {MAX_RATIO} to 1.")


def zip64_values(extra: bytes, values: Sequence[int], name: str) -> list[int]:
    """The 32-bit values, those that are saturated replaced in order from the zip64 extra, which then must end.

    An extra that no value needs may only repeat both sizes, as old Pythons do.
    """
    wide = _extras(extra, name).get(_ZIP64_EXTRA, b"")
    saturated = [index for index, value in enumerate(values) if value == SATURATED_32]
    if not saturated and wide == struct.pack("<2Q", *values[:2]):
        return list(values)
    if len(wide) != 8 * len(saturated):
        raise unsound(Code.ZIP_ZIP64, f"The sizes of {shown(name)} are stated ambiguously.")
    resolved = list(values)
    for index, (value,) in zip(saturated, struct.iter_unpack("<Q", wide), strict=True):
        resolved[index] = value
    return resolved


def _extras(data: bytes, name: str) -> dict[int, bytes]:
    extras: dict[int, bytes] = {}
    while data:
        if len(data) < 4:  # noqa: PLR2004  # an extra's own header
            raise unsound(Code.ZIP_EXTRA, f"An extra field of {shown(name)} breaks off.")
        kind, length = struct.unpack_from("<2H", data)
        body, data = data[4 : 4 + length], data[4 + length :]
        if len(body) != length or kind in extras or kind not in _PLAIN_EXTRAS:
            raise unsound(
                Code.ZIP_EXTRA, f"{shown(name)} has an extra field {kind:#06x} that is not expected."
            )
        extras[kind] = body
    return extras
