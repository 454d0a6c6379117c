"""The numbers of an adapter, judged while they stream by: finite, and moved by training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorant.verification.faults import Code, unsound
from tensorant.verification.finite import all_finite, all_zero
from tensorant.verification.safetensors_header import WIDTHS
from tensorant.verification.sections import Cutter, Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorant.verification.safetensors_header import Header, Tensor
    from tensorant.verification.tensors import Pair


class ValueScan:
    """Takes the weights file piece by piece; keeps what it saw, and one unfinished number."""

    def __init__(self, header: Header) -> None:
        sections: list[Section[Tensor | None]] = [Section(header.data_begin, None)]
        sections += [Section(tensor.end, tensor) for tensor in header.tensors]
        self._cutter = Cutter(sections)
        self._unfinished = b""
        self._not_finite: Tensor | None = None
        self._zero = {tensor.name for tensor in header.tensors}

    def take(self, content: bytes) -> None:
        for tensor, piece in self._cutter.cut(content):
            if tensor is not None:
                self._look(tensor, self._unfinished + piece)

    def _look(self, tensor: Tensor, data: bytes) -> None:
        whole = len(data) - len(data) % WIDTHS[tensor.dtype]
        self._unfinished = data[whole:]
        numbers = data[:whole]
        if self._not_finite is None and not all_finite(numbers, tensor.dtype):
            self._not_finite = tensor
        if tensor.name in self._zero and not all_zero(numbers, tensor.dtype):
            self._zero.remove(tensor.name)

    def check(self, pairs: Sequence[Pair]) -> None:
        """After the last piece. A pair changes nothing if either half is zero; training starts with B zero."""
        if self._not_finite is not None:
            raise unsound(Code.NOT_FINITE, f"{self._not_finite.name} holds NaN or infinite numbers.")
        idle = [pair.module for pair in pairs if {pair.a.name, pair.b.name} & self._zero]
        if len(idle) == len(pairs):
            raise unsound(
                Code.UNTRAINED, f"None of the {len(pairs)} adapted modules was trained: all are zero."
            )
        if idle:
            raise unsound(
                Code.PARTLY_UNTRAINED,
                f"{len(idle)} of {len(pairs)} adapted modules are zero, the first {idle[0]}.",
            )
