"""Local headers against the directory, and the proof that the entries cover every byte.

Readers that walk a zip from its start and readers that begin with its directory then see the same files.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorant.verification.archive import read_exactly
from tensorant.verification.faults import Code, unsound
from tensorant.verification.zip_end import LOCAL_SIGNATURE, find_directory
from tensorant.verification.zip_entries import HAS_DESCRIPTOR, MAX_VERSION, STORED, read_entries, zip64_values

if TYPE_CHECKING:
    from tensorant.verification.archive import Archive
    from tensorant.verification.zip_entries import Entry

_LOCAL = struct.Struct("<4sBx2H4x3L2H")
_DESCRIPTORS = {12: "<3L", 16: "<4s3L", 20: "<L2Q", 24: "<4sL2Q"}
"""The forms a data descriptor may take, by its length."""
_DESCRIPTOR_SIGNATURE = b"PK\x07\x08"


@dataclass(frozen=True)
class Member:
    """A file in the archive whose place is certain."""

    name: str
    stored: bool
    crc: int
    packed_size: int
    size: int
    offset: int
    """Of its data."""

    @property
    def end(self) -> int:
        return self.offset + self.packed_size


def read_members(archive: Archive) -> tuple[Member, ...]:
    """The archive's files in the order of their data, after the whole zip structure proved strict."""
    directory = find_directory(archive)
    entries = sorted(read_entries(archive, directory), key=lambda entry: entry.local_offset)
    starts = [entry.local_offset for entry in entries] + [directory.offset]
    if starts[0] != 0:
        raise unsound(Code.ZIP_GAPS, f"{starts[0]} bytes precede the first file.")
    return tuple(
        _member(archive, entry, next_start) for entry, next_start in zip(entries, starts[1:], strict=True)
    )


def _member(archive: Archive, entry: Entry, next_start: int) -> Member:
    data_offset = entry.local_offset + _check_local(archive, entry)
    member = Member(
        name=entry.name,
        stored=entry.method == STORED,
        crc=entry.crc,
        packed_size=entry.packed_size,
        size=entry.size,
        offset=data_offset,
    )
    if entry.flags & HAS_DESCRIPTOR:
        _check_descriptor(archive, member, next_start - member.end)
    elif member.end != next_start:
        raise unsound(
            Code.ZIP_GAPS, f"{entry.name} ends at byte {member.end}, but what follows begins at {next_start}."
        )
    return member


def _check_local(archive: Archive, entry: Entry) -> int:
    """Compare the header before the data with the directory; its length in bytes.

    Where sizes and CRC follow the data, the header may leave them 0.
    """
    header = read_exactly(archive, entry.local_offset, _LOCAL.size)
    signature, version, flags, method, crc, packed_size, size, *lengths = _LOCAL.unpack(header)
    if signature != LOCAL_SIGNATURE:
        raise unsound(Code.ZIP_LOCAL, f"{entry.name} does not begin where the directory says.")
    variable = read_exactly(archive, entry.local_offset + _LOCAL.size, sum(lengths))
    name, extra = variable[: lengths[0]], variable[lengths[0] :]
    size, packed_size = zip64_values(extra, (size, packed_size), entry.name)
    stated = (name, flags, method)
    if stated != (entry.name.encode("ascii"), entry.flags, entry.method) or version > MAX_VERSION:
        raise unsound(Code.ZIP_LOCAL, f"{entry.name} is described differently before its data.")
    left_open = entry.flags & HAS_DESCRIPTOR and (crc, packed_size, size) == (0, 0, 0)
    if not left_open and (crc, packed_size, size) != (entry.crc, entry.packed_size, entry.size):
        raise unsound(Code.ZIP_LOCAL, f"{entry.name} has another size or CRC before its data.")
    return _LOCAL.size + len(variable)


def _check_descriptor(archive: Archive, member: Member, length: int) -> None:
    layout = _DESCRIPTORS.get(length)
    if layout is None:
        raise unsound(Code.ZIP_GAPS, f"{length} bytes lie between {member.name} and what follows.")
    fields = struct.unpack(layout, read_exactly(archive, member.end, length))
    stated = (member.crc, member.packed_size, member.size)
    if fields not in (stated, (_DESCRIPTOR_SIGNATURE, *stated)):
        raise unsound(Code.ZIP_LOCAL, f"{member.name} has another size or CRC after its data.")
