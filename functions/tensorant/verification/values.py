"""The numbers of an adapter, judged while they stream by: finite, of a sane size, and moved by training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorant.verification.faults import Code, unsound
from tensorant.verification.finite import (
    MAX_MAGNITUDE,
    all_finite,
    all_zero,
    surely_small,
    within_magnitude,
)
from tensorant.verification.safetensors_header import WIDTHS
from tensorant.verification.sections import Cutter, Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorant.verification.safetensors_header import Header, Tensor
    from tensorant.verification.tensors import Contents, Extra, Pair

_MATRIX = 2


class ValueScan:
    """Takes the weights file piece by piece; keeps what it saw, and one unfinished number."""

    def __init__(self, header: Header) -> None:
        sections: list[Section[Tensor | None]] = [Section(header.data_begin, None)]
        sections += [Section(tensor.end, tensor) for tensor in header.tensors]
        self._cutter = Cutter(sections)
        self._unfinished = b""
        self._not_finite: Tensor | None = None
        self._too_large: Tensor | None = None
        self._zero = {tensor.name for tensor in header.tensors}

    def take(self, content: bytes) -> None:
        for tensor, piece in self._cutter.cut(content):
            if tensor is not None:
                self._look(tensor, self._unfinished + piece)

    def _look(self, tensor: Tensor, data: bytes) -> None:
        whole = len(data) - len(data) % WIDTHS[tensor.dtype]
        self._unfinished = data[whole:]
        numbers = data[:whole]
        if self._not_finite is None and not surely_small(numbers, tensor.dtype):
            self._look_closely(tensor, numbers)
        if tensor.name in self._zero and not all_zero(numbers, tensor.dtype):
            self._zero.remove(tensor.name)

    def _look_closely(self, tensor: Tensor, numbers: bytes) -> None:
        if not all_finite(numbers, tensor.dtype):
            self._not_finite = tensor
        elif self._too_large is None and not within_magnitude(numbers, tensor.dtype):
            self._too_large = tensor

    def check(self, contents: Contents) -> None:
        """After the last piece. A pair changes nothing if either half is zero; training starts with one of them so."""
        if self._not_finite is not None:
            raise unsound(Code.NOT_FINITE, f"{self._not_finite.name} holds NaN or infinite numbers.")
        if self._too_large is not None:
            raise unsound(Code.MAGNITUDE, f"{self._too_large.name} holds numbers above {MAX_MAGNITUDE:g}.")
        self._check_moved(contents.pairs)
        self._check_saved(contents.extras)

    def _check_moved(self, pairs: Sequence[Pair]) -> None:
        idle = [pair.module for pair in pairs if self._is_idle(pair)]
        if len(idle) == len(pairs):
            raise unsound(
                Code.UNTRAINED, f"None of the {len(pairs)} adapted modules was trained: all are zero."
            )
        if idle:
            raise unsound(
                Code.PARTLY_UNTRAINED,
                f"{len(idle)} of {len(pairs)} adapted modules are zero, the first {idle[0]}.",
            )

    def _is_idle(self, pair: Pair) -> bool:
        halves = {pair.a.name, pair.b.name} | ({pair.magnitude.name} if pair.magnitude else set())
        return bool(halves & self._zero)

    def _check_saved(self, extras: Sequence[Extra]) -> None:
        """A matrix of zeros does nothing; a bias may be zero."""
        for extra in extras:
            if len(extra.tensor.shape) >= _MATRIX and extra.tensor.name in self._zero:
                raise unsound(Code.PARTLY_UNTRAINED, f"{extra.tensor.name}, which was saved whole, is zero.")
