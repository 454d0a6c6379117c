"""Every trick a zip can play, and the code that names it."""

from __future__ import annotations

import struct
import zipfile
import zlib
from io import BytesIO
from typing import Any

import pytest

from tensorant.contract import FaultClass
from tests.support.archives import adapter_archive, adapter_files, job_spec, zip_of
from tests.support.raw_zip import SATURATED, RawEntry, end_record, extra_field, raw_zip, zip64_end
from tests.support.verdicts import code_of, verdict_on

GOOD = adapter_archive()
FILES = adapter_files(job_spec())
README = FILES["README.md"]
MANIFEST = FILES["manifest.json"]
END = 22
"""Bytes of the end record."""


def changed(target: str, /, *, directory_junk: bytes = b"", before_end: bytes = b"", **changes: Any) -> bytes:
    """The good archive with one entry written otherwise."""
    fields = [
        {"name": member.encode(), "data": data, **(changes if member == target else {})}
        for member, data in FILES.items()
    ]
    return raw_zip(
        [RawEntry(**each) for each in fields], directory_junk=directory_junk, before_end=before_end
    )


def with_readme(**changes: Any) -> bytes:
    return changed("README.md", **changes)


def renamed(new: bytes) -> bytes:
    """README.md under another name of the same length, everywhere."""
    return with_readme(name=new)


def with_second_readme(name: str) -> bytes:
    return zip_of({**FILES, name: README}).replace(name.encode(), b"README.md")


def with_end(*, disk: int = 0, more_entries: int = 0, comment: bytes = b"") -> bytes:
    count, length, offset = struct.unpack("<H2L", GOOD[-12:-2])
    return GOOD[:-END] + end_record(count + more_entries, length, offset, disk=disk, comment=comment)


def with_zip64_end(**lie: int) -> bytes:
    count, length, offset = struct.unpack("<H2L", GOOD[-12:-2])
    return GOOD[:-END] + zip64_end(count, length, offset, **lie)


def two_directories() -> bytes:
    """The end record knows one entry less than the zip64 end record before it."""
    count, length, offset = struct.unpack("<H2L", GOOD[-12:-2])
    wide = zip64_end(count, length, offset)
    return GOOD[:-END] + wide[:-END] + end_record(count - 1, length, offset)


def after_a_prefix() -> bytes:
    """Like a self-extracting archive: the directory knows of the prefix."""
    buffer = BytesIO(b"#!/bin/sh\nexit 1\n")
    buffer.seek(0, 2)
    with zipfile.ZipFile(buffer, "a") as archive:
        for name, data in FILES.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def with_flipped(needle: bytes, data: bytes = GOOD) -> bytes:
    at = data.index(needle)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def with_broken_deflate() -> bytes:
    deflated = bytearray(adapter_archive(compression=zipfile.ZIP_DEFLATED))
    start = 30 + len("README.md")
    deflated[start : start + 4] = b"\xff\xff\xff\xff"
    return bytes(deflated)


def deflated(name: str, data: bytes, *, lie: int = 0, tail: bytes = b"") -> bytes:
    """A file deflated by hand; `lie` is added to its size, `tail` to its stream."""
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(data) + packer.flush() + tail
    return changed(name, data=packed, method=8, crc=zlib.crc32(data), size=len(data) + lie)


BAD = [
    ("nothing", b"", "ZIP_TRUNCATED"),
    ("cut in the first signature", GOOD[:3], "ZIP_TRUNCATED"),
    ("half an upload", GOOD[: len(GOOD) // 2], "ZIP_TRUNCATED"),
    ("without the last byte", GOOD[:-1], "ZIP_TRUNCATED"),
    ("an error page", b"<html><body>404 Not Found</body></html>", "ZIP_NOT_ZIP"),
    ("a pointer of git-lfs", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "ZIP_NOT_ZIP"),
    ("the bare weights", FILES["adapter_model.safetensors"], "ZIP_NOT_ZIP"),
    ("100 bytes behind the end", GOOD + bytes(100), "ZIP_TRAILING"),
    ("a comment", with_end(comment=b"hello"), "ZIP_COMMENT"),
    ("an empty end record in the comment", with_end(comment=end_record(0, 0, 0)), "ZIP_GAPS"),
    ("a part of several", with_end(disk=1), "ZIP_DISKS"),
    ("an entry on another disk", with_readme(disk=1), "ZIP_DISKS"),
    ("a zip64 end elsewhere", with_zip64_end(shift=-1), "ZIP_ZIP64"),
    ("a zip64 end of two parts", with_zip64_end(disks=2), "ZIP_DISKS"),
    ("a zip64 end that says otherwise", two_directories(), "ZIP_ZIP64"),
    ("a saturated end without zip64", GOOD[:-END] + end_record(0xFFFF, 0, SATURATED), "ZIP_GAPS"),
    (
        "a zip64 extra nobody needs",
        with_readme(extra=extra_field(1, bytes(8))),
        "ZIP_ZIP64",
    ),
    ("a saturated size without its extra", with_readme(size=SATURATED), "ZIP_ZIP64"),
    ("bytes before the zip", b"junk" + GOOD, "ZIP_GAPS"),
    ("bytes before the first file", after_a_prefix(), "ZIP_GAPS"),
    ("bytes between files", with_readme(after=b"hidden"), "ZIP_GAPS"),
    ("bytes between directory and end", with_readme(before_end=b"hidden"), "ZIP_GAPS"),
    ("files on top of each other", with_readme(offset=1), "ZIP_GAPS"),
    ("an offset outside", with_readme(offset=1 << 30), "ZIP_GAPS"),
    ("bytes within the directory", with_readme(directory_junk=b"hidden"), "ZIP_DIRECTORY"),
    ("an entry too few", with_end(more_entries=1), "ZIP_DIRECTORY"),
    ("65 entries", raw_zip([RawEntry(b"f%d" % n, b"") for n in range(65)]), "ZIP_ENTRIES"),
    ("a comment on a file", with_readme(comment=b"hello"), "ZIP_COMMENT"),
    ("another name in an extra", with_readme(extra=extra_field(0x7075, bytes(9))), "ZIP_EXTRA"),
    ("an extra that breaks off", with_readme(extra=b"\x55\x54\xff\xff"), "ZIP_EXTRA"),
    ("a folder", renamed(b"folder/README.md"), "ZIP_NAMES"),
    ("a way up", renamed(b"../README.md"), "ZIP_NAMES"),
    ("an absolute path", renamed(b"/README.md"), "ZIP_NAMES"),
    ("a backslash", renamed(b"..\\README.md"), "ZIP_NAMES"),
    ("a name cut by NUL", renamed(b"README.md\0.sh"), "ZIP_NAMES"),
    ("an umlaut", renamed("R\u00c9ADME.md".encode()), "ZIP_NAMES"),
    ("an empty name", renamed(b""), "ZIP_NAMES"),
    ("a line break", renamed(b"README.md\n"), "ZIP_NAMES"),
    ("the arguments, pickled", zip_of({**FILES, "training_args.bin": b"\x80\x04."}), "ZIP_PICKLE"),
    ("the adapter, pickled", zip_of({**FILES, "adapter_model.bin": b"\x80\x04."}), "ZIP_PICKLE"),
    ("an optimizer's state", zip_of({**FILES, "optimizer.PT": b"\x80\x04."}), "ZIP_PICKLE"),
    ("a script", zip_of({**FILES, "modeling.py": b"import os"}), "ZIP_UNEXPECTED_FILE"),
    ("other weights", zip_of({**FILES, "model.safetensors": b""}), "ZIP_UNEXPECTED_FILE"),
    ("a name twice", with_second_readme("README.xx"), "ZIP_DUPLICATE"),
    ("a name in two cases", zip_of({**FILES, "readme.md": README}), "ZIP_DUPLICATE"),
    ("a link", with_readme(mode=0o120777), "ZIP_NOT_REGULAR"),
    ("a directory's mode", with_readme(mode=0o040755), "ZIP_NOT_REGULAR"),
    ("encrypted", with_readme(flags=1), "ZIP_ENCRYPTED"),
    ("patch data", with_readme(flags=1 << 5), "ZIP_METHOD"),
    ("a format of the future", with_readme(version=63), "ZIP_METHOD"),
    ("a format of the future before the data", with_readme(local_version=63), "ZIP_LOCAL"),
    ("bzip2", adapter_archive(compression=zipfile.ZIP_BZIP2), "ZIP_METHOD"),
    ("lzma", adapter_archive(compression=zipfile.ZIP_LZMA), "ZIP_METHOD"),
    ("a bomb", deflated("README.md", bytes(1 << 20)), "ZIP_RATIO"),
    ("a size to fill a disk", with_readme(packed_size=1 << 30, size=1 << 30), "ZIP_TOO_LARGE"),
    ("stored with two sizes", with_readme(size=len(README) + 1), "ZIP_DIRECTORY"),
    ("another name before the data", with_readme(local_name=b"REALLY.md"), "ZIP_LOCAL"),
    ("another method before the data", with_readme(local_method=8), "ZIP_LOCAL"),
    ("another size before the data", with_readme(local_sizes=(zlib.crc32(README), 1, 1)), "ZIP_LOCAL"),
    ("sizes left open without saying so", with_readme(local_sizes=(0, 0, 0)), "ZIP_LOCAL"),
    ("a descriptor that lies", with_readme(flags=8, after=bytes(12)), "ZIP_LOCAL"),
    ("no descriptor after all", with_readme(flags=8), "ZIP_GAPS"),
    ("a broken stream", with_broken_deflate(), "ZIP_DEFLATE"),
    ("a stream longer than stated", deflated("manifest.json", MANIFEST, lie=-1), "ZIP_DEFLATE"),
    ("a stream shorter than stated", deflated("manifest.json", MANIFEST, lie=1), "ZIP_DEFLATE"),
    ("a stream with a tail", deflated("manifest.json", MANIFEST, tail=b"tail"), "ZIP_DEFLATE"),
    ("a bit of the README", with_flipped(b"An adapter"), "ZIP_CRC"),
    (
        "a bit of the manifest",
        with_flipped(b"early_stop", GOOD.replace(b'"finished"', b"early_stop")),
        "ZIP_CRC",
    ),
    ("a bit of the config", with_flipped(b"CAUSAL_LM"), "ZIP_CRC"),
    ("a bit of the weights' header", with_flipped(b"base_model.model."), "ZIP_CRC"),
    ("a bit of the weights", with_flipped(struct.pack("<f", 0.25)), "ZIP_CRC"),
]


@pytest.mark.parametrize(("data", "code"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_refused(data: bytes, code: str) -> None:
    assert code_of(data) == code


def test_a_pickle_is_a_matter_of_policy_and_the_mend_says_what_to_save() -> None:
    fault = verdict_on(zip_of({**FILES, "adapter_model.bin": b"\x80\x04."})).fault

    assert fault is not None
    assert fault.fault_class is FaultClass.POLICY
    assert fault.message == "adapter_model.bin is a pickle, which can run code when loaded."
    assert "adapter_model.safetensors" in fault.mend


def test_damage_on_the_way_asks_for_another_upload() -> None:
    fault = verdict_on(with_flipped(struct.pack("<f", 0.25))).fault

    assert fault is not None
    assert fault.fault_class is FaultClass.TRANSPORT
    assert fault.message == "adapter_model.safetensors is damaged: its CRC is another."
    assert fault.mend == "Upload the archive again from the machine that made it."
