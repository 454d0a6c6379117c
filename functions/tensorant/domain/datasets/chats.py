"""What a chat must be: known roles in a possible order, and at least one answer to learn from."""

from __future__ import annotations

from typing import Any

from tensorant.domain.datasets.faults import RowError
from tensorant.domain.datasets.seen import Seen, text_bytes
from tensorant.domain.datasets.strict_json import named
from tensorant.domain.datasets.tools import Calls, tool_names

ROLES = ("user", "assistant", "system", "tool")

_MEANT = {
    "human": "user",
    "gpt": "assistant",
    "bot": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "developer": "system",
    "function": "tool",
}
_PLAIN = 2
"""Fields of a message that has a role and a content alone."""


def chat_bytes(row: dict[str, Any], seen: Seen) -> int:
    """Bytes of all text of a chat, tools included. Raises `RowError`."""
    messages = row["messages"]
    if type(messages) is not list:
        raise RowError("messages", f"It is {named(messages)}, not a list.", "Write a list of messages.")
    calls, size = None, 0
    if len(row) > 1 and row.get("tools"):
        names, size = tool_names(row["tools"])
        calls = Calls(names)
    answered = False
    for number, message in enumerate(messages):
        role = message.get("role") if type(message) is dict else None
        if role not in ROLES:
            raise _role_error(message, number)
        seen.roles[role] += 1
        if role == "assistant":
            answered = answered or number > 0
        elif role == "system" and number:
            raise RowError(
                f"messages[{number}].role", "The system message is not the first.", "Put it first, once."
            )
        if calls is None and len(message) == _PLAIN and role != "tool":
            size += _content(message.get("content"), number)  # nearly every message
            continue
        calls = calls or Calls()
        size += _with_tools(message, role, number, calls, seen)
    if not answered:
        raise RowError(
            "messages",
            "No assistant turn answers anybody: there is nothing to learn.",
            "Add the answer that is to be learned, behind what it answers.",
        )
    if calls is not None and calls.used:
        seen.tool_rows += 1
    return size


def _role_error(message: Any, number: int) -> RowError:
    """For a message that is no object, or whose role is unknown."""
    field = f"messages[{number}]"
    if type(message) is not dict:
        return RowError(field, f"It is {named(message)}, not an object.", "Write role and content.")
    role, known = message.get("role"), f"Use one of {', '.join(sorted(ROLES))}."
    if type(role) is not str:
        what = f"The role is {named(role)}, not a string." if "role" in message else "The role is missing."
        return RowError(f"{field}.role", what, known)
    meant = _MEANT.get(role.strip().lower(), role.strip().lower())
    mend = f'Write "{meant}".' if meant in ROLES else known
    return RowError(f"{field}.role", f"The role {role[:40]!a} is unknown.", mend)


def _content(content: Any, number: int) -> int:
    if type(content) is not str or not content or content.isspace():
        raise _content_error(content, number)
    return len(content) if content.isascii() else text_bytes(content, f"messages[{number}].content")


def _content_error(content: Any, number: int) -> RowError:
    field = f"messages[{number}].content"
    if type(content) is str:
        return RowError(field, "The content is empty.", "Give every message a text.")
    if content is None:
        return RowError(field, "The content is missing.", "Give every message a text.")
    mend = "Join its parts of text into one string; pictures and sound cannot be trained on."
    return RowError(
        field,
        f"The content is {named(content)}, not a string.",
        mend if type(content) is list else "Write it as a string.",
    )


def _with_tools(message: dict[str, Any], role: str, number: int, calls: Calls, seen: Seen) -> int:
    """Bytes of a message that calls tools, answers a call, or has fields of its own."""
    field = f"messages[{number}]"
    content = message.get("content")
    used = {"role", "content"}
    if role == "assistant":
        used |= {"tool_calls"}
    if role == "tool":
        used |= {"tool_call_id", "name"}
        calls.answered(message, field)
        size = text_bytes(content, f"{field}.content") if type(content) is str else -1
        if size < 0:
            raise _content_error(content, number)
    elif role == "assistant" and message.get("tool_calls") is not None:
        size = calls.made(message["tool_calls"], field)
        size += 0 if content is None or content == "" else _content(content, number)
    else:
        if role == "assistant" and "function_call" in message:
            raise RowError(
                f"{field}.function_call",
                "A function_call is the old way to call a tool.",
                'Write "tool_calls": [{"type": "function", "function": {"name": …, "arguments": {…}}}].',
            )
        calls.require_answered(field)
        size = _content(content, number)
    if unused := message.keys() - used:
        seen.leave(message, unused, below="messages[].")
    return size
