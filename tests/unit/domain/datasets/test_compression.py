"""Files as people bring them: compressed, cut off, damaged, or something else."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from tensorant.domain.datasets import compression
from tensorant.domain.datasets.compression import MAX_BYTES, PIECE, Plain, UnreadableError
from tensorant.domain.datasets.judging import Content, judge
from tensorant.domain.datasets.report import Compression

TEXT = b"".join(b'{"text": "row %d"}\n' % number for number in range(20_000))
SKIPPABLE = struct.pack("<II", 0x184D2A53, 5) + b"hello"
PACK: dict[Compression, Callable[[bytes], bytes]] = {
    Compression.NONE: bytes,
    Compression.GZIP: gzip.compress,
    Compression.ZSTD: zstd.compress,
}


def pieces(content: bytes, size: int) -> list[bytes]:
    return [content[start : start + size] for start in range(0, len(content), size)]


def read(file: bytes, chunk: int = 1 << 20) -> tuple[bytes, Plain]:
    plain = Plain(pieces(file, chunk))
    return b"".join(plain.chunks()), plain


def refused(file: bytes, chunk: int = 1 << 20) -> str:
    with pytest.raises(UnreadableError) as caught:
        read(file, chunk)
    assert caught.value.fault.mend
    return caught.value.fault.message


@pytest.mark.parametrize("kind", Compression)
@pytest.mark.parametrize("chunk", [1, 7, 1 << 16, 1 << 20])
def test_a_file_is_read_whatever_its_name_and_its_chunks(kind: Compression, chunk: int) -> None:
    text = TEXT[:5000] if chunk < 10 else TEXT
    file = PACK[kind](text)

    content, plain = read(file, chunk)

    assert content == text
    assert (plain.compression, plain.taken, plain.given) == (kind, len(file), len(text))


@pytest.mark.parametrize("kind", [Compression.GZIP, Compression.ZSTD])
def test_frames_behind_each_other_are_one_file(kind: Compression) -> None:
    file = b"".join(PACK[kind](piece) for piece in pieces(TEXT, 50_000))

    assert read(file, 1000)[0] == TEXT


def test_zeros_behind_gzip_and_frames_without_content_say_nothing() -> None:
    assert read(gzip.compress(TEXT) + bytes(512), 100)[0] == TEXT
    assert read(SKIPPABLE + zstd.compress(TEXT) + SKIPPABLE, 100)[0] == TEXT


@pytest.mark.parametrize("kind", [Compression.GZIP, Compression.ZSTD])
def test_a_file_that_is_cut_off_is_told(kind: Compression) -> None:
    file = PACK[kind](TEXT)

    assert refused(file[:-1]) == f"The file ends in the middle of its {kind} data."
    assert refused(file[: len(file) // 2], 100) == f"The file ends in the middle of its {kind} data."


def test_a_damaged_file_is_told() -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[-6] ^= 1  # its checksum
    checked = zstd.compress(TEXT, options={zstd.CompressionParameter.checksum_flag: 1})

    assert refused(bytes(packed)) == "The file is damaged: gzip cannot read it."
    assert refused(checked[:-1] + bytes([checked[-1] ^ 1])) == "The file is damaged: zstd cannot read it."
    assert refused(gzip.compress(TEXT) + b"rubbish") == "The file is damaged: gzip cannot read it."


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("rows.jsonl", TEXT)
    return file.getvalue()


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (zipped(), "The file is a zip archive."),
        (bz2.compress(TEXT), "The file is compressed with bzip2."),
        (lzma.compress(TEXT), "The file is compressed with xz."),
        (b"PAR1" + TEXT, "The file is a Parquet file."),
    ],
)
def test_what_is_something_else_is_named(file: bytes, message: str) -> None:
    assert refused(file, 1) == message


def bomb(pack: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """64 MiB of zeros at a time, as often as they are taken."""
    frame = pack(bytes(64 << 20))
    while True:
        yield frame


@pytest.mark.parametrize("kind", [Compression.GZIP, Compression.ZSTD])
def test_a_bomb_is_refused_on_the_way_and_in_little_memory(kind: Compression) -> None:
    source = bomb(PACK[kind])
    next(source)  # the frame is made before memory is measured
    plain, sizes = Plain(source), set()
    tracemalloc.start()
    with pytest.raises(UnreadableError) as caught:
        sizes.update(len(chunk) for chunk in plain.chunks())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert caught.value.fault.message == "The file unpacks to more than 250 times its size."
    assert max(sizes) <= PIECE
    assert plain.given <= compression.RATIO_COUNTS_FROM + PIECE
    assert peak < 16 << 20


def test_more_than_the_limit_is_refused_plain_too() -> None:
    plain = Plain(b"x" * (1 << 20) for _ in iter(int, 1))

    with pytest.raises(UnreadableError, match="larger than 1 GiB"):
        sum(len(chunk) for chunk in plain.chunks())
    assert plain.given == MAX_BYTES + (1 << 20)


def test_a_window_larger_than_ours_is_refused() -> None:
    options = {
        zstd.CompressionParameter.window_log: 28,
        zstd.CompressionParameter.enable_long_distance_matching: 1,
    }
    engine = zstd.ZstdCompressor(options=options)
    file = engine.compress(TEXT) + engine.flush()

    assert refused(file) == "The file is damaged: zstd cannot read it."


@given(
    st.binary(max_size=300), st.sampled_from([b"", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"]), st.integers(1, 50)
)
def test_no_bytes_crash_the_judge(rest: bytes, magic: bytes, chunk: int) -> None:
    found = judge(pieces(magic + rest, chunk))

    assert isinstance(found, Content) or 1 <= len(found) <= 100


@given(st.data())
def test_a_mutated_gzip_or_zstd_is_read_or_refused(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([Compression.GZIP, Compression.ZSTD]))
    file = bytearray(PACK[kind](TEXT[:2000]))
    for _ in range(data.draw(st.integers(1, 4))):
        file[data.draw(st.integers(0, len(file) - 1))] = data.draw(st.integers(0, 255))

    found = judge(pieces(bytes(file), 64))

    assert isinstance(found, Content) or found
