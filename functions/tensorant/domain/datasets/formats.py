"""The three formats of rows, and which one a row has."""

from __future__ import annotations

from typing import Any

from tensorant.domain.datasets.chats import chat_bytes
from tensorant.domain.datasets.faults import RowError
from tensorant.domain.datasets.report import RowFormat
from tensorant.domain.datasets.seen import Seen, is_blank, text_bytes
from tensorant.domain.datasets.strict_json import named

FIELDS = {
    RowFormat.CHAT: frozenset({"messages", "tools"}),
    RowFormat.PROMPT: frozenset({"prompt", "completion"}),
    RowFormat.TEXT: frozenset({"text"}),
}

SHAPES = 'Write {"messages": [{"role": …, "content": …}, …]}, {"prompt": …, "completion": …} or {"text": …} in every row.'

_RENAMES = {
    "conversations": 'Rename "conversations" to "messages", and in them "from" to "role" and "value" to "content".',
    "instruction": 'Write "instruction" and "input" together as "prompt", and "output" as "completion".',
    "question": 'Rename "question" to "prompt" and "answer" to "completion".',
    "input": 'Rename "input" to "prompt" and "output" to "completion".',
}


def judged(row: dict[str, Any], seen: Seen) -> tuple[int, int]:
    """Bytes of text in a row, and how many messages they are in. Raises `RowError`."""
    kind = _format(row)
    if kind is not seen.format:
        _require_same(kind, seen)
    if kind is RowFormat.CHAT:
        sizes = chat_bytes(row, seen), len(row["messages"])
    elif kind is RowFormat.PROMPT:
        sizes = _text(row, "prompt") + _text(row, "completion"), 1
    else:
        sizes = _text(row, "text"), 1
    if len(row) > 1 and (unused := row.keys() - FIELDS[kind]):
        seen.leave(row, unused)
    return sizes


def _format(row: dict[str, Any]) -> RowFormat:
    chat, prompt, text = "messages" in row, "prompt" in row or "completion" in row, "text" in row
    if chat + prompt + text > 1:
        names = [name for name in ("messages", "prompt", "completion", "text") if name in row]
        raise RowError(
            names[1],
            f"The row has {' and '.join(names)}: it could be read in two ways.",
            f"Leave out {' and '.join(names[1:])}, or keep only what is to be learned from.",
        )
    if chat:
        return RowFormat.CHAT
    if prompt:
        return RowFormat.PROMPT
    if text:
        return RowFormat.TEXT
    mend = next((mend for name, mend in _RENAMES.items() if name in row), SHAPES)
    raise RowError("messages", "The row has neither messages, nor prompt and completion, nor text.", mend)


def _require_same(kind: RowFormat, seen: Seen) -> None:
    if seen.format is None:
        seen.format = kind
        return
    name = {RowFormat.CHAT: "messages", RowFormat.PROMPT: "prompt", RowFormat.TEXT: "text"}[kind]
    raise RowError(
        name,
        f"Mixed formats: the row is {kind}, but the rows before are {seen.format}.",
        "Bring one format a dataset; make two versions of two formats.",
    )


def _text(row: dict[str, Any], name: str) -> int:
    text = row.get(name)
    if type(text) is not str:
        what = f"is {named(text)}, not a string" if name in row else "is missing"
        raise RowError(name, f"The {name} {what}.", f'Write "{name}" as a string.')
    if is_blank(text):
        raise RowError(name, f"The {name} is empty.", "Leave the row out, or give it a text.")
    return text_bytes(text, name)
