"""From a file as it was brought to its bytes: plain, gzip or zstd, told by the first bytes and not by a name.

Memory is bounded whatever the file says: a decompressor is asked for `PIECE` bytes at a time, and a file that
unpacks to too much is refused on the way, not after it.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from tensorant.domain.datasets.report import Compression, DatasetFault

if sys.version_info >= (3, 14):
    from compression.zstd import DecompressionParameter, ZstdDecompressor, ZstdError
else:
    from backports.zstd import DecompressionParameter, ZstdDecompressor, ZstdError

PIECE = 1 << 20
"""Bytes that come out of a decompressor at a time."""
SLICE = 1 << 16
"""Bytes that go in at a time."""
MAX_BYTES = 1 << 30
"""Of a dataset, decompressed."""
MAX_RATIO = 250
"""Bytes out for each byte in, beyond `RATIO_COUNTS_FROM`: text that packs better repeats itself."""
RATIO_COUNTS_FROM = 64 << 20
ZSTD_WINDOW_LOG = 27
"""As zstd's own default: a decompressor needs at most 128 MiB, and 8 MiB for what `zstd -19` writes."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = frozenset(bytes([each]) + b"\x2a\x4d\x18" for each in range(0x50, 0x60))
"""What begins a zstd frame without content (RFC 8878, section 3.1.2)."""
_LONGEST_MAGIC = 6
_OTHERS = {
    b"PK\x03\x04": "a zip archive",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"PAR1": "a Parquet file",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
}


class UnreadableError(Exception):
    """The file cannot be read any further; `fault` is for its owner."""

    def __init__(self, message: str, mend: str, *, line: int = 0) -> None:
        super().__init__(message)
        self.fault = DatasetFault(line=line, field="", message=message, mend=mend)


class _Decompressor(Protocol):
    """The shape that the standard library gives its decompressors."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


@dataclass
class Plain:
    """The bytes of one file. Read `chunks` once; the rest is known as far as that has come."""

    source: Iterable[bytes]
    compression: Compression = Compression.NONE
    taken: int = 0
    """Bytes of the file as it was brought."""
    given: int = 0
    """Bytes that came out of it."""

    def chunks(self) -> Iterator[bytes]:
        """Of at most a few MiB each. Raises `UnreadableError`."""
        brought = self._brought()
        first = _first(brought)
        self.compression = compression_of(first)
        match self.compression:
            case Compression.GZIP:
                chunks = _decompressed(first, brought, _Gzip, "gzip")
            case Compression.ZSTD:
                chunks = _decompressed(first, brought, _zstd, "zstd")
            case Compression.NONE:
                chunks = _and_then(first, brought)
        for chunk in chunks:
            self.given += len(chunk)
            self._refuse_bombs()
            yield chunk

    def _brought(self) -> Iterator[bytes]:
        for chunk in self.source:
            self.taken += len(chunk)
            yield chunk

    def _refuse_bombs(self) -> None:
        if self.given > MAX_BYTES:
            raise UnreadableError(
                f"The file is larger than {MAX_BYTES >> 30} GiB once it is decompressed.",
                "Split it, or leave out rows.",
            )
        if self.given > RATIO_COUNTS_FROM and self.given > self.taken * MAX_RATIO:
            raise UnreadableError(
                f"The file unpacks to more than {MAX_RATIO} times its size.",
                "Remove the rows that repeat, or bring the file decompressed.",
            )


def compression_of(first: bytes) -> Compression:
    """By the first bytes. Raises `UnreadableError` for formats that are something else."""
    if first.startswith(_GZIP):
        return Compression.GZIP
    if first.startswith(_ZSTD) or first[:4] in _SKIPPABLE:
        return Compression.ZSTD
    for magic, what in _OTHERS.items():
        if first.startswith(magic):
            raise UnreadableError(
                f"The file is {what}.", "Bring JSON Lines: plain, or compressed with gzip or zstd."
            )
    return Compression.NONE


def _first(brought: Iterator[bytes]) -> bytes:
    """Enough bytes to tell what the file is, if it has that many."""
    first = b""
    while len(first) < _LONGEST_MAGIC and (chunk := next(brought, None)) is not None:
        first += chunk
    return first


def _and_then(first: bytes, brought: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from brought


def _decompressed(
    first: bytes, brought: Iterator[bytes], new: Callable[[], _Decompressor], name: str
) -> Iterator[bytes]:
    """Frame after frame (both formats allow several), `PIECE` bytes at a time."""
    engine, begun = new(), False
    for data in _slices(_and_then(first, brought)):
        rest = data
        while rest or not (engine.eof or engine.needs_input):
            if engine.eof:
                rest = _without_padding(rest, name)
                if not rest:
                    break
                engine = new()
            begun = True
            try:
                yield engine.decompress(rest, PIECE)
            except (zlib.error, ZstdError) as error:
                raise UnreadableError(
                    f"The file is damaged: {name} cannot read it.", "Compress it again and upload it again."
                ) from error
            rest = engine.unused_data if engine.eof else b""
    if begun and not engine.eof:
        raise UnreadableError(f"The file ends in the middle of its {name} data.", "Upload it again, whole.")


def _slices(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Small enough that copying the rest behind a frame stays cheap, however small the frames are."""
    for chunk in chunks:
        for start in range(0, len(chunk), SLICE):
            yield chunk[start : start + SLICE]


def _without_padding(rest: bytes, name: str) -> bytes:
    """Tapes and block devices pad gzip with zeros, as gzip itself tolerates."""
    return rest.lstrip(b"\0") if name == "gzip" else rest


def _zstd() -> _Decompressor:
    return ZstdDecompressor(options={DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG})


@dataclass
class _Gzip:
    """zlib's decompressor in the shape of the newer ones."""

    _engine: zlib._Decompress = field(default_factory=lambda: zlib.decompressobj(wbits=31))
    _more: bool = False

    @property
    def eof(self) -> bool:
        return self._engine.eof

    @property
    def needs_input(self) -> bool:
        """The last answer was not full, so nothing is held back."""
        return not self._more

    @property
    def unused_data(self) -> bytes:
        return self._engine.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        piece = self._engine.decompress(self._engine.unconsumed_tail + data, max_length)
        self._more = len(piece) == max_length or bool(self._engine.unconsumed_tail)
        return piece
