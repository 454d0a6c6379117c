from __future__ import annotations

import hashlib
import zipfile
from typing import TYPE_CHECKING

from tensorant.contract import BaseModelRef, Manifest
from tensorant_trainer.archive import manifest_path, pack

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = Manifest(
    run_id="run-1",
    attempt=2,
    status="complete",
    stop_reason="finished",
    steps_done=3,
    steps_total=3,
    base=BaseModelRef(repository="a/b", revision="main"),
    spec_sha256="1" * 64,
    dataset_sha256="2" * 64,
    files={},
)
FILES = {"adapter_config.json": b"{}\n", "README.md": b"# An adapter\n"}


def packed(directory: Path) -> tuple[Path, Manifest]:
    directory.mkdir()
    for name, content in FILES.items():
        (directory / name).write_bytes(content)
    archive = directory / "runs" / "run-1" / "adapter.zip"
    return archive, pack(directory, FILES, MANIFEST, archive)


def test_the_same_files_make_the_same_bytes(tmp_path: Path) -> None:
    first, _ = packed(tmp_path / "one")
    second, _ = packed(tmp_path / "two")

    assert first.read_bytes() == second.read_bytes()


def test_members_are_stored_sorted_and_dated_alike(tmp_path: Path) -> None:
    archive, _ = packed(tmp_path / "one")

    with zipfile.ZipFile(archive) as opened:
        members = opened.infolist()
        assert {name: opened.read(name) for name in FILES} == FILES
    assert [member.filename for member in members] == ["README.md", "adapter_config.json", "manifest.json"]
    assert {member.compress_type for member in members} == {zipfile.ZIP_STORED}
    assert {member.date_time for member in members} == {(1980, 1, 1, 0, 0, 0)}
    assert {member.external_attr >> 16 for member in members} == {0o100644}
    assert {member.flag_bits & 0x08 for member in members} == {0}  # sizes stand in front, not behind


def test_the_member_tells_of_the_files_and_the_object_beside_of_the_archive_too(tmp_path: Path) -> None:
    archive, beside = packed(tmp_path / "one")

    with zipfile.ZipFile(archive) as opened:
        inside = Manifest.model_validate_json(opened.read("manifest.json"))
    assert inside.archive is None
    assert {name: digest.sha256 for name, digest in inside.files.items()} == {
        name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()
    }
    assert beside.archive is not None
    assert beside.archive.size == archive.stat().st_size
    assert beside.archive.sha256 == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert beside.model_copy(update={"archive": None}) == inside
    assert Manifest.model_validate_json(manifest_path(archive).read_bytes()) == beside


def test_no_unfinished_archive_is_left_behind(tmp_path: Path) -> None:
    archive, _ = packed(tmp_path / "one")

    assert sorted(path.name for path in archive.parent.iterdir()) == ["adapter.manifest.json", "adapter.zip"]
