"""The header of a safetensors file: names, types, shapes and places of its tensors.

Source of the format: the safetensors README, "Format". Stricter than its reader where that one is lenient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorant.verification.archive import EDGE_BYTES
from tensorant.verification.faults import Code, shown, unsound
from tensorant.verification.members import member_named, read_head
from tensorant.verification.strict_json import parse_object
from tensorant.verification.zip_names import WEIGHTS_MEMBER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorant.verification.archive import Archive
    from tensorant.verification.zip_layout import Member

MAX_HEADER_BYTES = 16 << 20
LENGTH_BYTES = 8
"""The file begins with its header's length, little-endian."""
METADATA = "__metadata__"

WIDTHS = {"F32": 4, "F16": 2, "BF16": 2}
"""Bytes per element of the types that adapters are saved in."""


@dataclass(frozen=True)
class Tensor:
    """`begin` and `end` are offsets in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Header:
    """`tensors` lie one after the other from `data_begin` to the file's end."""

    data_begin: int
    tensors: tuple[Tensor, ...]


def read_header(archive: Archive, members: Sequence[Member]) -> Header:
    member = member_named(members, WEIGHTS_MEMBER, Code.ST_MISSING)
    head = read_head(archive, member, EDGE_BYTES)
    if len(head) < LENGTH_BYTES:
        raise unsound(Code.ST_HEADER, f"{WEIGHTS_MEMBER} has {len(head)} bytes, too few for a header.")
    data_begin = LENGTH_BYTES + int.from_bytes(head[:LENGTH_BYTES], "little")
    if data_begin > MAX_HEADER_BYTES:
        raise unsound(
            Code.ST_HEADER, f"{WEIGHTS_MEMBER} is not a safetensors file, or its header is too large."
        )
    if data_begin > member.size:
        raise unsound(Code.ST_SIZE, f"{WEIGHTS_MEMBER} breaks off in its header.")
    if data_begin > len(head):
        head = read_head(archive, member, data_begin)
    return parse_header(head[LENGTH_BYTES:data_begin], file_size=member.size)


def parse_header(text: bytes, *, file_size: int) -> Header:
    """Check every field, and that the tensors cover the rest of the file exactly."""
    try:
        fields = parse_object(text)
    except ValueError as error:
        raise unsound(Code.ST_HEADER, f"The header of {WEIGHTS_MEMBER} can't be read: {error}.") from error
    if not text.startswith(b"{"):
        raise unsound(Code.ST_HEADER, f"The header of {WEIGHTS_MEMBER} does not begin with a brace.")
    _check_metadata(fields.pop(METADATA, {}))
    data_begin = LENGTH_BYTES + len(text)
    tensors = [_tensor(name, stated, data_begin) for name, stated in fields.items()]
    if not tensors:
        raise unsound(Code.ST_EMPTY, f"{WEIGHTS_MEMBER} holds no tensor.")
    tensors.sort(key=lambda tensor: tensor.begin)
    _check_cover(tensors, data_begin, file_size)
    return Header(data_begin, tuple(tensors))


def _check_metadata(metadata: object) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise unsound(Code.ST_HEADER, f"{METADATA} of {WEIGHTS_MEMBER} is not a map of texts.")


def _tensor(name: str, stated: Any, data_begin: int) -> Tensor:
    if not isinstance(stated, dict) or set(stated) != {"dtype", "shape", "data_offsets"}:
        raise unsound(
            Code.ST_HEADER, f"The tensor {shown(name)} is not described by type, shape and offsets."
        )
    dtype, shape, offsets = stated["dtype"], stated["shape"], stated["data_offsets"]
    if not isinstance(dtype, str) or dtype not in WIDTHS:
        raise unsound(Code.ST_DTYPE, f"The tensor {shown(name)} is of type {shown(dtype)}.")
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:  # noqa: PLR2004  # begin, end
        raise unsound(Code.ST_HEADER, f"Shape or offsets of the tensor {shown(name)} are not sizes.")
    begin, end = offsets
    tensor = Tensor(name, dtype, tuple(shape), data_begin + begin, data_begin + end)
    if tensor.elements == 0:
        raise unsound(Code.ST_EMPTY_TENSOR, f"The tensor {shown(name)} of shape {shown(shape)} is empty.")
    if end - begin != tensor.elements * WIDTHS[dtype]:
        raise unsound(Code.ST_OFFSETS, f"The offsets of the tensor {shown(name)} do not fit its shape.")
    return tensor


def _are_sizes(values: object) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _check_cover(tensors: Sequence[Tensor], data_begin: int, file_size: int) -> None:
    at = data_begin
    for tensor in tensors:
        if tensor.begin != at:
            raise unsound(
                Code.ST_OFFSETS, f"The tensor {shown(tensor.name)} overlaps another or leaves a gap."
            )
        at = tensor.end
    if at != file_size:
        raise unsound(
            Code.ST_SIZE, f"{WEIGHTS_MEMBER} has {file_size} bytes, but its header describes {at} bytes."
        )
