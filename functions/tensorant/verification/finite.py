"""Numbers judged by their bits, without decoding them: fast in plain Python, and exact.

Little-endian IEEE 754 and bfloat16. A number is NaN or infinite exactly if all its exponent bits are set; it is
zero exactly if no bit but the sign is. The bytes of equal rank are looked at together: `data[1::2]` are the upper
halves of all numbers of 16 bits.
"""

from __future__ import annotations

import re

from tensorant.verification.safetensors_header import WIDTHS

_HALF_SATURATED = bytes(high for high in range(256) if high & 0x7C == 0x7C)  # noqa: PLR2004  # 5 exponent bits
"""F16 holds its whole exponent in the upper byte."""
_SATURATED = bytes((0x7F, 0xFF))
"""Upper bytes with the first 7 of 8 exponent bits set (BF16, F32); the last is the top bit of the byte below."""
_IS_SATURATED = bytes(byte & 0x7F == 0x7F for byte in range(256))  # noqa: PLR2004
_TOP_BIT = bytes(byte >> 7 for byte in range(256))

_NOT_SIGN_OR_ZERO = re.compile(rb"[^\x00\x80]")


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
