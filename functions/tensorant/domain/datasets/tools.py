"""Tools in a chat: what is offered, what is called, and what the tools answered."""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from tensorant.domain.datasets.faults import RowError
from tensorant.domain.datasets.seen import is_blank, json_bytes
from tensorant.domain.datasets.strict_json import named

TOOL = 'Write {"type": "function", "function": {"name": …, "description": …, "parameters": {…}}}.'
CALL = 'Write {"type": "function", "function": {"name": …, "arguments": {…}}}.'


def tool_names(tools: Any) -> tuple[frozenset[str], int]:
    """The names of the tools that a chat offers, and the bytes of their descriptions. Raises `RowError`."""
    if type(tools) is not list:
        raise RowError("tools", f"It is {named(tools)}, not a list.", "Write a list of tools, or none.")
    names = set()
    for number, tool in enumerate(tools):
        function = _function(tool, f"tools[{number}]", TOOL)
        parameters = function.get("parameters")
        if parameters is not None and type(parameters) is not dict:
            raise RowError(
                f"tools[{number}].function.parameters",
                f"They are {named(parameters)}, not an object.",
                "Write a JSON schema.",
            )
        if function["name"] in names:
            raise RowError(
                f"tools[{number}].function.name",
                f"The tool {function['name'][:60]!a} is there twice.",
                "Give every tool its own name.",
            )
        names.add(function["name"])
    return frozenset(names), json_bytes(tools, "tools")


def _function(holder: Any, where: str, shape: str) -> dict[str, Any]:
    """The function of a tool or of a call, with its name. Raises `RowError`."""
    if type(holder) is not dict or type(holder.get("function")) is not dict:
        raise RowError(f"{where}.function", "It has no function.", shape)
    if holder.get("type", "function") != "function":
        raise RowError(f"{where}.type", "It is not a function.", shape)
    function: dict[str, Any] = holder["function"]
    name = function.get("name")
    if type(name) is not str or is_blank(name):
        raise RowError(f"{where}.function.name", "The function has no name.", shape)
    return function


@dataclass
class Calls:
    """The calls of one chat, message after message."""

    offered: AbstractSet[str] | None = None
    """None if the chat does not say which tools there are."""
    open: bool = False
    """A call was made, and nothing but answers of tools came after it."""
    used: bool = False
    _ids: set[str] = field(default_factory=set)
    _answers: int = 0

    def __post_init__(self) -> None:
        self.used = self.offered is not None

    def made(self, tool_calls: Any, where: str) -> int:
        """Bytes of an assistant's calls. Raises `RowError`."""
        where = f"{where}.tool_calls"
        if type(tool_calls) is not list or not tool_calls:
            raise RowError(where, "It is not a list of calls.", "Write a list of calls, or leave it out.")
        self.require_answered(where)
        self.open = self.used = True
        self._ids, self._answers = set(), 0
        return sum(self._made(call, f"{where}[{number}]") for number, call in enumerate(tool_calls))

    def _made(self, call: Any, where: str) -> int:
        function = _function(call, where, CALL)
        name, arguments = function["name"], function.get("arguments", {})
        if self.offered is not None and name not in self.offered:
            raise RowError(
                f"{where}.function.name",
                f"{name[:60]!a} is none of the chat's tools.",
                "Add it to the tools, or correct its name.",
            )
        if type(arguments) is str:
            arguments = _parsed(arguments, f"{where}.function.arguments")
        if type(arguments) is not dict:
            raise RowError(
                f"{where}.function.arguments",
                f"They are {named(arguments)}, not an object.",
                "Write an object, or its JSON as a string.",
            )
        if "id" in call:
            self._identify(call["id"], where)
        return json_bytes({"name": name, "arguments": arguments}, where)

    def _identify(self, identifier: Any, where: str) -> None:
        if type(identifier) is not str or identifier in self._ids:
            raise RowError(
                f"{where}.id", "The id is not a string of its own.", "Give every call of a turn another id."
            )
        self._ids.add(identifier)

    def answered(self, message: dict[str, Any], where: str) -> None:
        """A tool answers. Raises `RowError` if nothing was called, or not that."""
        if not self.open:
            raise RowError(
                f"{where}.role",
                "A tool answers, but the assistant has called none.",
                "Put the assistant's message with its tool_calls before it.",
            )
        identifier = message.get("tool_call_id")
        if identifier is not None and (type(identifier) is not str or identifier not in self._ids):
            raise RowError(
                f"{where}.tool_call_id",
                "No call before has this id.",
                "Repeat the id of the call it answers.",
            )
        self._answers += 1

    def require_answered(self, where: str) -> None:
        """Somebody else speaks. Raises `RowError` if calls are still without any answer."""
        if self.open and not self._answers:
            raise RowError(
                where,
                "The tools that were called have not answered.",
                'Put a message with the role "tool" behind the call.',
            )
        self.open = False


def _parsed(arguments: str, where: str) -> Any:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        raise RowError(
            where, "The string is not JSON.", "Write an object, or its JSON as a string."
        ) from None
