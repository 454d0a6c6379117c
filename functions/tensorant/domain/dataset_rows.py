"""What a row of a dataset must be: one JSON object a line, a chat that ends in something to learn."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tensorant.domain.projects import DatasetFault

MAX_FAULTS = 100
MAX_ROW_BYTES = 1_000_000
ROLES = frozenset({"system", "user", "assistant", "tool"})


@dataclass
class Report:
    """What a pass over a dataset has found so far. Feed it chunks, then call `end`."""

    rows: int = 0
    size: int = 0
    faults: list[DatasetFault] = field(default_factory=list)
    _digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    _line: int = 0
    _rest: bytes = b""

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def reading(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Pass the chunks on while checking them, in constant memory for rows of bounded size."""
        for chunk in chunks:
            self._digest.update(chunk)
            self.size += len(chunk)
            self._split(chunk)
            yield chunk
        if self._rest:
            self._row(self._rest)
            self._rest = b""
        if not self.rows and not self.faults:
            self._fault("", "The file has no rows.", "Upload JSON Lines: one chat a line.")

    def _split(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._row(line)
        if len(self._rest) > MAX_ROW_BYTES:
            self._rest = self._rest[: MAX_ROW_BYTES + 1]

    def _row(self, line: bytes) -> None:
        self._line += 1
        if len(line) > MAX_ROW_BYTES:
            self._fault(
                "", f"The row is longer than {MAX_ROW_BYTES:,} bytes.", "Split it into shorter chats."
            )
            return
        if not line.strip():
            self._fault("", "The row is empty.", "Remove the empty line.")
            return
        fault = _fault_of(line)
        if fault is None:
            self.rows += 1
        else:
            self._fault(*fault)

    def _fault(self, name: str, message: str, mend: str) -> None:
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(DatasetFault(line=self._line, field=name, message=message, mend=mend))


def _fault_of(line: bytes) -> tuple[str, str, str] | None:
    """Field, message and mend of the first fault in a row; None for a good one."""
    try:
        row = json.loads(line)
    except UnicodeDecodeError:
        return "", "The row is not UTF-8.", "Save the file as UTF-8."
    except (ValueError, RecursionError) as error:
        return "", f"The row is not JSON: {error}.", "Write one JSON object on each line."
    if not isinstance(row, dict) or not isinstance(row.get("messages"), list):
        return (
            "messages",
            "The row has no list of messages.",
            'Write {"messages": [{"role": …, "content": …}]}.',
        )
    for number, message in enumerate(row["messages"]):
        if not isinstance(message, dict) or str(message.get("role")) not in ROLES:
            return (
                f"messages[{number}].role",
                "The role is unknown.",
                f"Use one of {', '.join(sorted(ROLES))}.",
            )
        if not isinstance(message.get("content"), str) or not message["content"].strip():
            return f"messages[{number}].content", "The content is empty.", "Give every message a text."
    if all(message["role"] != "assistant" for message in row["messages"]):
        return "messages", "No assistant turn: there is nothing to learn.", "Add the answer to be learnt."
    return None
