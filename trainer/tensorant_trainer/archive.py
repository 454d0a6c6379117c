"""The archive: stored, not deflated; the same bytes for the same files; whole or not there."""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from typing import TYPE_CHECKING

from tensorant.contract import MANIFEST_MEMBER, MANIFEST_OBJECT, ArchiveDigest, FileDigest, Manifest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FIXED_DATE = (1980, 1, 1, 0, 0, 0)
"""The earliest a zip can hold."""
_UNIX = 3
_REGULAR_FILE = 0o100644 << 16


def file_digest(path: Path) -> FileDigest:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return FileDigest(size=path.stat().st_size, sha256=sha256)


def pack(directory: Path, names: Iterable[str], manifest: Manifest, archive: Path) -> Manifest:
    """Write `archive` from the named files and the manifest about them; answer the manifest for beside it.

    `manifest.files` is filled in here. The manifest for beside it, which knows the archive's size and hash,
    is also left next to the archive. Readers never see half an archive: it is renamed when it is on disk.
    """
    files = {name: file_digest(directory / name) for name in sorted(names)}
    inside = manifest.model_copy(update={"files": files, "archive": None})
    (directory / MANIFEST_MEMBER).write_text(manifest_text(inside), encoding="utf-8")
    archive.parent.mkdir(parents=True, exist_ok=True)
    _write_zip(archive, directory, [*files, MANIFEST_MEMBER])
    beside = inside.model_copy(update={"archive": ArchiveDigest(**file_digest(archive).model_dump())})
    manifest_path(archive).write_text(manifest_text(beside), encoding="utf-8")
    return beside


def manifest_path(archive: Path) -> Path:
    """Where the manifest beside an archive lies on this disk."""
    return archive.with_name(MANIFEST_OBJECT)


def manifest_text(manifest: Manifest) -> str:
    """The same bytes for the same manifest."""
    return manifest.model_dump_json(indent=2, exclude_none=True) + "\n"


def _write_zip(archive: Path, directory: Path, names: Iterable[str]) -> None:
    unfinished = archive.with_name(archive.name + ".part")
    with unfinished.open("wb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as packed:
            for name in sorted(names):
                _add(packed, directory / name)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(archive)
    _sync_directory(archive.parent)


def _add(packed: zipfile.ZipFile, path: Path) -> None:
    """One member, streamed. Its size, known beforehand, decides about zip64."""
    member = zipfile.ZipInfo(path.name, FIXED_DATE)
    member.create_system = _UNIX
    member.external_attr = _REGULAR_FILE
    member.file_size = path.stat().st_size
    with path.open("rb") as source, packed.open(member, "w") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def _sync_directory(directory: Path) -> None:
    """Makes the rename itself durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
