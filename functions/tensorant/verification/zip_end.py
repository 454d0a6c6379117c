"""The end of a zip: where its central directory lies. The record must be the very last bytes.

Source of the layouts: PKWARE APPNOTE 6.3.10, sections 4.3.14 to 4.3.16.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorant.verification.archive import EDGE_BYTES, read_exactly
from tensorant.verification.faults import Code, Unsound, unsound

if TYPE_CHECKING:
    from tensorant.verification.archive import Archive

LOCAL_SIGNATURE = b"PK\x03\x04"
SATURATED_16 = 0xFFFF
SATURATED_32 = 0xFFFFFFFF
"""A field of this value says: read me from the zip64 structure."""

_END = struct.Struct("<4s4H2LH")
_END_SIGNATURE = b"PK\x05\x06"
_LOCATOR = struct.Struct("<4sLQL")
_LOCATOR_SIGNATURE = b"PK\x06\x07"
_END_64 = struct.Struct("<4sQ2H2L4Q")
_END_64_SIGNATURE = b"PK\x06\x06"


@dataclass(frozen=True)
class Directory:
    """Place of the central directory, and the number of its entries. It ends where the end records begin."""

    offset: int
    length: int
    entries: int


def find_directory(archive: Archive) -> Directory:
    """Read the end records; the directory must touch them, so nothing can hide in between."""
    end_at = archive.size - _END.size
    tail = archive.read(end_at, _END.size) if end_at >= 0 else b""
    if len(tail) != _END.size or tail[:4] != _END_SIGNATURE or tail[-2:] != b"\0\0":
        raise _without_end(archive)
    _, disk, directory_disk, here, entries, length, offset, _ = _END.unpack(tail)
    if (disk, directory_disk, here) != (0, 0, entries):
        raise unsound(Code.ZIP_DISKS, "The archive claims to be one part of several.")
    directory = Directory(offset, length, entries)
    locator_at = end_at - _LOCATOR.size
    if locator_at >= 0 and read_exactly(archive, locator_at, 4) == _LOCATOR_SIGNATURE:
        directory, end_at = _zip64(archive, locator_at, directory)
    if directory.offset + directory.length != end_at:
        raise unsound(
            Code.ZIP_GAPS,
            f"The directory spans bytes {directory.offset} to {directory.offset + directory.length}, "
            f"but the end record lies at {end_at}.",
        )
    return directory


def _without_end(archive: Archive) -> Unsound:
    """Tell apart why the end record is not the last thing: a comment, trailing bytes, a cut, or no zip at all."""
    tail_length = min(archive.size, EDGE_BYTES)
    tail = read_exactly(archive, archive.size - tail_length, tail_length)
    found = tail.rfind(_END_SIGNATURE)
    if found >= 0 and len(tail) - found >= _END.size:
        comment = int.from_bytes(tail[found + 20 : found + 22], "little")
        if comment == len(tail) - found - _END.size:
            return unsound(Code.ZIP_COMMENT, f"The archive has a comment of {comment} bytes.")
        return unsound(Code.ZIP_TRAILING, "Bytes follow the end of the archive.")
    if archive.size == 0:
        return unsound(Code.ZIP_TRUNCATED, "The archive is empty.")
    if read_exactly(archive, 0, min(4, archive.size)) == LOCAL_SIGNATURE[: archive.size]:
        return unsound(Code.ZIP_TRUNCATED, f"The archive breaks off after {archive.size} bytes.")
    return unsound(Code.ZIP_NOT_ZIP, "The file is not a zip archive.")


def _zip64(archive: Archive, locator_at: int, small: Directory) -> tuple[Directory, int]:
    """The directory as the zip64 end record states it, and where that record begins.

    Only what large archives need is accepted: record, locator and end, touching each other. The end's own fields
    must be saturated or say the same (Python writes this record from 2 GiB on, and saturates from 4).
    """
    record_at = locator_at - _END_64.size
    both = read_exactly(archive, record_at, _END_64.size + _LOCATOR.size)
    signature, own_length, _, _, disk, directory_disk, here, entries, length, offset = _END_64.unpack_from(
        both
    )
    _, locator_disk, located_at, disks = _LOCATOR.unpack_from(both, _END_64.size)
    if (signature, own_length, located_at) != (_END_64_SIGNATURE, _END_64.size - 12, record_at):
        raise unsound(Code.ZIP_ZIP64, "The zip64 end record is not where and what its locator says.")
    if (disk, directory_disk, locator_disk, disks, here) != (0, 0, 0, 1, entries):
        raise unsound(Code.ZIP_DISKS, "The archive claims to be one part of several.")
    directory = Directory(offset, length, entries)
    if small != Directory(
        min(offset, SATURATED_32), min(length, SATURATED_32), min(entries, SATURATED_16)
    ) and (small != Directory(SATURATED_32, SATURATED_32, SATURATED_16)):
        raise unsound(Code.ZIP_ZIP64, "The archive states two different places for its directory.")
    return directory, record_at
