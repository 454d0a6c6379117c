"""The content of an archive's files, inflated in bounded memory and proved by CRC."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from tensorant.verification.archive import CHUNK_BYTES, read_exactly
from tensorant.verification.faults import Code, Unsound, unsound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorant.verification.archive import Archive
    from tensorant.verification.hashing import Hasher
    from tensorant.verification.zip_layout import Member

_RAW_DEFLATE = -15


class Unpacker:
    """Takes a member's packed bytes piece by piece and gives its content, none of it larger than a chunk."""

    def __init__(self, member: Member, hasher: Hasher | None = None) -> None:
        self._member = member
        self._inflater = None if member.stored else zlib.decompressobj(_RAW_DEFLATE)
        self._crc = 0
        self._hasher = hasher
        self.size = 0

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        for content in (packed,) if self._inflater is None else self._inflated(packed):
            if self._hasher is not None:
                self._hasher.update(content)
            self._crc = zlib.crc32(content, self._crc)
            self.size += len(content)
            yield content

    def _inflated(self, packed: bytes) -> Iterator[bytes]:
        inflater = self._inflater
        assert inflater is not None  # noqa: S101  # `unpack` asked; this tells the type checker
        while packed or not inflater.eof:
            try:
                content = inflater.decompress(packed, CHUNK_BYTES)
            except zlib.error as error:
                raise self._broken() from error
            packed = inflater.unconsumed_tail
            if inflater.unused_data or self.size + len(content) > self._member.size:
                raise self._broken()
            if not content:
                return
            yield content

    def finish(self) -> None:
        """After the last piece: a member that is not what its size and CRC say is a fault."""
        whole = self._inflater is None or self._inflater.eof
        if not whole or self.size != self._member.size:
            raise self._broken()
        if self._crc != self._member.crc:
            raise unsound(Code.ZIP_CRC, f"{self._member.name} is damaged: its CRC is another.")

    def _broken(self) -> Unsound:
        if self._inflater is None:
            return unsound(Code.ARCHIVE_SIZE, f"{self._member.name} breaks off.")
        return unsound(
            Code.ZIP_DEFLATE, f"{self._member.name} does not decompress to what the archive states."
        )


def member_named(members: Sequence[Member], name: str, missing: Code) -> Member:
    for member in members:
        if member.name == name:
            return member
    raise unsound(missing, f"The archive holds no {name}.")


def read_member(archive: Archive, member: Member) -> bytes:
    """A small member, whole, its CRC checked."""
    unpacker = Unpacker(member)
    content = b"".join(unpacker.unpack(read_exactly(archive, member.offset, member.packed_size)))
    unpacker.finish()
    return content


def read_head(archive: Archive, member: Member, length: int) -> bytes:
    """The first bytes of a member, at most `length`, not yet proved by anything."""
    length = min(length, member.size)
    if member.stored:
        return read_exactly(archive, member.offset, length)
    unpacker, head = Unpacker(member), bytearray()
    for packed in archive.stream(member.offset, member.packed_size):
        for content in unpacker.unpack(packed):
            head += content
            if len(head) >= length:
                return bytes(head[:length])
    return bytes(head)
