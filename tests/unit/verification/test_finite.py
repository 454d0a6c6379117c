"""The quick judgement of numbers agrees with decoding them one by one."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorant.verification.finite import all_finite, all_zero
from tests.support.archives import encoded

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTHS = {"F32": 4, "F16": 2, "BF16": 2}


def decoded(data: bytes, dtype: str) -> list[float]:
    """The numbers by the standard library; BF16 by widening each to F32."""
    if dtype == "BF16":
        data = b"".join(b"\0\0" + data[at : at + 2] for at in range(0, len(data), 2))
    code, width = ("e", 2) if dtype == "F16" else ("f", 4)
    return list(struct.unpack(f"<{len(data) // width}{code}", data))


def numbers(dtype: str) -> st.SearchStrategy[bytes]:
    """Any bits, and often those at the edge of infinity and zero."""
    width = WIDTHS[dtype]
    edges = {
        2: ["007c", "00fc", "ff7b", "fffb", "017c", "807f", "80ff", "7f7f", "7fff", "0080", "0000", "0100"],
        4: ["0000807f", "000080ff", "ffff7f7f", "ffff7fff", "0100807f", "00000080", "01000000", "00000000"],
    }
    edge = st.sampled_from([bytes.fromhex(bits) for bits in edges[width]])
    return st.lists(st.one_of(edge, st.binary(min_size=width, max_size=width)), max_size=40).map(b"".join)


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize(
    ("judge", "truth"),
    [(all_finite, math.isfinite), (all_zero, lambda number: number == 0)],
    ids=["finite", "zero"],
)
def test_agrees_with_the_decoded_numbers(
    dtype: str, judge: Callable[[bytes, str], bool], truth: Callable[[float], bool]
) -> None:
    @settings(max_examples=150, deadline=None)
    @given(numbers(dtype))
    def agrees(data: bytes) -> None:
        assert judge(data, dtype) is all(map(truth, decoded(data, dtype)))

    agrees()


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
def test_all_numbers_of_16_bits(dtype: str) -> None:
    for bits in range(1 << 16):
        data = bits.to_bytes(2, "little")
        (number,) = decoded(data, dtype)
        assert all_finite(data, dtype) is math.isfinite(number)
        assert all_zero(data, dtype) is (number == 0)


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("place", [0, 1, 499, 998, 999])
def test_one_bad_number_is_found_wherever_it_is(dtype: str, place: int) -> None:
    values = [0.5] * 1000
    values[place] = math.nan

    assert all_finite(encoded(dtype, *[0.5] * 1000), dtype)
    assert not all_finite(encoded(dtype, *values), dtype)


@pytest.mark.parametrize("dtype", WIDTHS)
def test_bytes_of_neighbours_do_not_add_up_to_an_infinity(dtype: str) -> None:
    """The largest finite number beside one whose lower bytes are all ones."""
    data = {
        "F32": bytes.fromhex("ffff7f7fffffff3f"),
        "F16": bytes.fromhex("ff7bff3f"),
        "BF16": bytes.fromhex("7f7fff3f"),
    }[dtype]

    assert all_finite(data * 100, dtype)
