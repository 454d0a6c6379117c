"""A zip written field by field, so that a test can tell any single lie."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

SATURATED = 0xFFFFFFFF


@dataclass(frozen=True)
class RawEntry:
    """A stored file. A field of None is the truth; whatever else it is, is written as it stands."""

    name: bytes
    data: bytes
    version: int = 20
    local_version: int = 20
    flags: int = 0
    method: int = 0
    mode: int = 0o100600
    crc: int | None = None
    packed_size: int | None = None
    size: int | None = None
    extra: bytes = b""
    comment: bytes = b""
    disk: int = 0
    offset: int | None = None
    local_name: bytes | None = None
    local_method: int | None = None
    local_sizes: tuple[int, int, int] | None = None
    """CRC, packed size and size, as the local header has them."""
    local_extra: bytes = b""
    after: bytes = b""
    """Bytes behind the data: a descriptor, or junk."""

    def sizes(self) -> tuple[int, int, int]:
        crc = zlib.crc32(self.data) if self.crc is None else self.crc
        packed = len(self.data) if self.packed_size is None else self.packed_size
        return crc, packed, len(self.data) if self.size is None else self.size

    def local(self) -> bytes:
        name = self.name if self.local_name is None else self.local_name
        method = self.method if self.local_method is None else self.local_method
        sizes = self.local_sizes or self.sizes()
        header = struct.pack(
            "<4s5H3L2H",
            b"PK\x03\x04",
            self.local_version,
            self.flags,
            method,
            0,
            0x21,
            *sizes,
            len(name),
            len(self.local_extra),
        )
        return header + name + self.local_extra + self.data + self.after

    def central(self, offset: int) -> bytes:
        header = struct.pack(
            "<4s2B5H3L5H2L",
            b"PK\x01\x02",
            20,
            3,
            self.version,
            self.flags,
            self.method,
            0,
            0x21,
            *self.sizes(),
            len(self.name),
            len(self.extra),
            len(self.comment),
            self.disk,
            0,
            self.mode << 16,
            offset if self.offset is None else self.offset,
        )
        return header + self.name + self.extra + self.comment


def raw_zip(entries: list[RawEntry], *, directory_junk: bytes = b"", before_end: bytes = b"") -> bytes:
    data, central = b"", b""
    for entry in entries:
        central += entry.central(len(data))
        data += entry.local()
    central += directory_junk
    return data + central + before_end + end_record(len(entries), len(central), len(data))


def end_record(entries: int, length: int, offset: int, *, disk: int = 0, comment: bytes = b"") -> bytes:
    return (
        struct.pack("<4s4H2LH", b"PK\x05\x06", disk, 0, entries, entries, length, offset, len(comment))
        + comment
    )


def zip64_end(entries: int, length: int, offset: int, *, shift: int = 0, disks: int = 1) -> bytes:
    """Record, locator and saturated end. `shift` moves where the locator says that the record lies."""
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, entries, entries, length, offset)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, offset + length + shift, disks)
    return record + locator + end_record(0xFFFF, SATURATED, SATURATED)


def extra_field(kind: int, body: bytes) -> bytes:
    return struct.pack("<2H", kind, len(body)) + body
