"""One read of the whole archive, from its first byte to its last, that proves it and looks at every number."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorant.contract import ArchiveDigest, FileDigest
from tensorant.verification.faults import Code, unsound
from tensorant.verification.members import Unpacker
from tensorant.verification.sections import Cutter, Section
from tensorant.verification.zip_names import WEIGHTS_MEMBER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorant.verification.archive import Archive
    from tensorant.verification.values import ValueScan
    from tensorant.verification.zip_layout import Member


@dataclass(frozen=True)
class Digests:
    archive: ArchiveDigest
    members: dict[str, FileDigest]


def stream_archive(archive: Archive, members: Sequence[Member], scan: ValueScan | None = None) -> Digests:
    """Hash the archive and its members (in the order of their data), and show the weights to `scan`.

    Constant memory. A member that its CRC or size contradicts is a fault; `scan` only collects.
    """
    unpackers = {member.name: Unpacker(member) for member in members}
    cutter = Cutter(_sections(members))
    sha256, size = hashlib.sha256(), 0
    for chunk in archive.stream(0, archive.size):
        sha256.update(chunk)
        size += len(chunk)
        for name, packed in cutter.cut(chunk):
            if name is None:
                continue
            for content in unpackers[name].unpack(packed):
                if scan is not None and name == WEIGHTS_MEMBER:
                    scan.take(content)
    if size != archive.size:
        raise unsound(Code.ARCHIVE_SIZE, f"The archive has {size} bytes instead of its {archive.size}.")
    return Digests(
        archive=ArchiveDigest(size=size, sha256=sha256.hexdigest()),
        members={name: unpacker.digest() for name, unpacker in unpackers.items()},
    )


def _sections(members: Sequence[Member]) -> list[Section[str | None]]:
    """Data by member name; headers and descriptors, which lie between, by None."""
    sections: list[Section[str | None]] = []
    for member in members:
        sections += [Section(member.offset, None), Section(member.end, member.name)]
    return sections
