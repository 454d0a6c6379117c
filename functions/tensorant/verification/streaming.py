"""One read of the whole archive, from its first byte to its last, that proves it and looks at every number."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorant.contract import ArchiveDigest, FileDigest
from tensorant.verification.faults import Code, unsound
from tensorant.verification.hashing import Hasher
from tensorant.verification.members import Unpacker
from tensorant.verification.sections import Cutter, Section
from tensorant.verification.zip_names import WEIGHTS_MEMBER

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tensorant.verification.archive import Archive
    from tensorant.verification.values import ValueScan
    from tensorant.verification.zip_layout import Member


@dataclass(frozen=True)
class Digests:
    archive: ArchiveDigest
    members: dict[str, FileDigest]


def stream_archive(
    archive: Archive,
    members: Sequence[Member],
    scan: ValueScan | None = None,
    *,
    unhashed: Collection[str] = (),
) -> Digests:
    """Hash the archive and its members (in the order of their data), and show the weights to `scan`.

    Members named in `unhashed` are proved by size and CRC alone, and have no digest in the answer. Constant memory.
    A member that its CRC or size contradicts is a fault; `scan` only collects.
    """
    with ThreadPoolExecutor(max_workers=2) as pool:  # one for the archive, one for the member
        hashers = {member.name: Hasher(pool) for member in members if member.name not in unhashed}
        return _streamed(archive, members, scan, Hasher(pool), hashers)


def _streamed(
    archive: Archive,
    members: Sequence[Member],
    scan: ValueScan | None,
    sha256: Hasher,
    hashers: Mapping[str, Hasher],
) -> Digests:
    unpackers = {member.name: Unpacker(member, hashers.get(member.name)) for member in members}
    cutter = Cutter(_sections(members))
    size = 0
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
    for unpacker in unpackers.values():
        unpacker.finish()
    return Digests(
        archive=ArchiveDigest(size=size, sha256=sha256.hexdigest()),
        members={
            name: FileDigest(size=unpackers[name].size, sha256=hasher.hexdigest())
            for name, hasher in hashers.items()
        },
    )


def _sections(members: Sequence[Member]) -> list[Section[str | None]]:
    """Data by member name; headers and descriptors, which lie between, by None."""
    sections: list[Section[str | None]] = []
    for member in members:
        sections += [Section(member.offset, None), Section(member.end, member.name)]
    return sections
