"""Numbers judged by their bits, nearly all of them without decoding: fast in plain Python, and exact.

Little-endian IEEE 754 and bfloat16. A number is NaN or infinite exactly if all its exponent bits are set; it is
zero exactly if no bit but the sign is. The bytes of equal rank are looked at together: `data[1::2]` are the upper
halves of all numbers of 16 bits.
"""

from __future__ import annotations

import re
import struct
import sys
from array import array

from tensorant.verification.safetensors_header import WIDTHS

_HALF_SATURATED = bytes(high for high in range(256) if high & 0x7C == 0x7C)  # noqa: PLR2004  # 5 exponent bits
"""F16 holds its whole exponent in the upper byte."""
_SATURATED = bytes((0x7F, 0xFF))
"""Upper bytes with the first 7 of 8 exponent bits set (BF16, F32); the last is the top bit of the byte below."""
_IS_SATURATED = bytes(byte & 0x7F == 0x7F for byte in range(256))  # noqa: PLR2004
_TOP_BIT = bytes(byte >> 7 for byte in range(256))

MAX_MAGNITUDE = 1e4
"""No trained adapter holds larger numbers; one that does has diverged, though its numbers are finite."""
_SURELY_SMALL = {"F32": 0x46, "F16": 0x70, "BF16": 0x46}
"""Upper bytes below these, the sign left out, belong to numbers below 8192; 10000 is 0x461c4000, 0x70e2, 0x461c."""
_ONLY_SMALL = {
    dtype: bytes(high if high & 0x7F < first else 0 for high in range(256))
    for dtype, first in _SURELY_SMALL.items()
}
"""Tables that keep those bytes and change all others."""

_NOT_SIGN_OR_ZERO = re.compile(rb"[^\x00\x80]")


def surely_small(data: bytes, dtype: str) -> bool:
    """Whether every number is finite and below 8192: the quick look that nearly all adapters pass.

    `translate` is quickest where no byte changes, and then hands back the very bytes that it was given.
    """
    high = data[WIDTHS[dtype] - 1 :: WIDTHS[dtype]]
    return high.translate(_ONLY_SMALL[dtype]) == high


def within_magnitude(data: bytes, dtype: str) -> bool:
    """Whether no number is larger than `MAX_MAGNITUDE`, exactly. The numbers must be finite."""
    values = array("f")
    if dtype == "F16":
        values.extend(struct.unpack(f"<{len(data) // 2}e", data))
    else:
        values.frombytes(data if dtype == "F32" else _widened(data))
        if sys.byteorder == "big":
            values.byteswap()
    return not values or (max(values) <= MAX_MAGNITUDE and min(values) >= -MAX_MAGNITUDE)


def _widened(data: bytes) -> bytes:
    """BF16 as F32, whose upper half it is."""
    wide = bytearray(2 * len(data))
    wide[2::4], wide[3::4] = data[::2], data[1::2]
    return bytes(wide)


def all_finite(data: bytes, dtype: str) -> bool:
    """Whether no number is NaN or infinite. `data` holds whole numbers of `dtype`, one of `WIDTHS`."""
    width = WIDTHS[dtype]
    high = data[width - 1 :: width]
    if dtype == "F16":
        return not _has_any(high, _HALF_SATURATED)
    if not _has_any(high, _SATURATED):
        return True
    candidates = int.from_bytes(high.translate(_IS_SATURATED), "little")
    confirmed = int.from_bytes(data[width - 2 :: width].translate(_TOP_BIT), "little")
    return candidates & confirmed == 0


def all_zero(data: bytes, dtype: str) -> bool:
    """Whether every number is 0 or -0. Ends at the first byte that says otherwise."""
    if _NOT_SIGN_OR_ZERO.search(data):
        return False
    width = WIDTHS[dtype]
    return all(not any(data[rank::width]) for rank in range(width - 1))


def _has_any(data: bytes, values: bytes) -> bool:
    """One search per value: `in` for a single byte is memchr, far faster than any loop or pattern."""
    for value in values:  # noqa: SIM110  # a generator would cost as much as the searches of small tensors
        if value in data:
            return True
    return False
