"""What the rows of a dataset have in common, gathered while they are judged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tensorant.domain.datasets.faults import RowError
from tensorant.domain.datasets.report import RowFormat
from tensorant.domain.datasets.strict_json import require_shallow

MAX_UNUSED = 20
MAX_NAME = 60


@dataclass
class Seen:
    """Filled by the rules of each format."""

    format: RowFormat | None = None
    roles: dict[str, int] = field(default_factory=lambda: {"system": 0, "user": 0, "assistant": 0, "tool": 0})
    tool_rows: int = 0
    unused: dict[str, None] = field(default_factory=dict)
    """In the order in which they were met."""

    def leave(self, holder: Mapping[str, object], names: Iterable[str], *, below: str = "") -> None:
        """Fields that no training reads. They are no fault, but their owner may think they matter.

        Raises `RowError` if they are nested too deep: the trainer parses them with the rest.
        """
        for name in names:
            require_shallow(holder[name], f"{below}{name[:MAX_NAME]}")
            if len(self.unused) < MAX_UNUSED:
                self.unused[f"{below}{name[:MAX_NAME]}"] = None


def text_bytes(text: str, field_name: str) -> int:
    """Its size in UTF-8. Raises `RowError` if it has none: half of a surrogate pair is no character."""
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise RowError(
            field_name,
            f"Character {error.start + 1} is half of a surrogate pair.",
            "Write the whole pair, for instance \\ud83d\\ude00, or the character itself.",
        ) from None


def json_bytes(value: object, field_name: str) -> int:
    """Size of a value as JSON, about as a chat template writes it. Raises `RowError` for deep ones."""
    require_shallow(value, field_name)
    return text_bytes(json.dumps(value, ensure_ascii=False), field_name)


def is_blank(text: str) -> bool:
    return not text or text.isspace()
