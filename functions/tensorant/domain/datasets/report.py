"""What a pass over a dataset leaves: faults to mend, or a description of what is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFault:
    """What is wrong with a line (1-based; 0 is the file itself) of a dataset, and how to mend it."""

    line: int
    field: str
    message: str
    mend: str


class Compression(StrEnum):
    """How a file was brought, told by its first bytes."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


class RowFormat(StrEnum):
    """What the rows of a dataset are; all of them are the same."""

    CHAT = "chat"
    """`messages`, and `tools` if the assistant may call any."""
    PROMPT = "prompt"
    """`prompt` and `completion`, of which the completion is learned."""
    TEXT = "text"
    """`text`, all of it learned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """How long rows are, in estimated tokens: half of them are at most `half` long, and so on."""

    half: int
    nine_in_ten: int
    ninety_nine_in_hundred: int
    longest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetReport:
    """Exact unless said otherwise."""

    format: RowFormat
    compression: Compression
    uploaded_bytes: int
    """Of the file as it was brought; `DatasetVersion.bytes` is what is stored of it."""
    tokens: int
    """An estimate, see `tally.tokens`: no tokenizer is known before a base model is chosen."""
    lengths: Lengths
    roles: Mapping[str, int]
    """Messages by their role; empty unless the rows are chats."""
    tool_rows: int
    """Rows with tools or with calls of them."""
    duplicates: int
    """Rows that are the same as another before them, byte by byte in the normal form."""
    compared_rows: int
    """Among how many rows, from the first, duplicates were looked for."""
    unused_fields: tuple[str, ...] = ()
    """Fields that some rows have and no training reads; the first twenty."""
