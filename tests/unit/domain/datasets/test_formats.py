"""What a row may be, and what is said about one that may not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tensorant.domain.datasets.judging import Content, judge
from tensorant.domain.datasets.report import DatasetFault, RowFormat

USER = {"role": "user", "content": "Hi"}
ANSWER = {"role": "assistant", "content": "Hello"}
SYSTEM = {"role": "system", "content": "Be brief."}
GOOD = json.dumps({"messages": [USER, ANSWER]}).encode()

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
CALL = {"id": "call-1", "type": "function", "function": {"name": "weather", "arguments": {"city": "Oslo"}}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call-1", "content": "rain"}


def line(**row: Any) -> bytes:
    return json.dumps(row).encode()


def chat(*messages: Any, **others: Any) -> bytes:
    return line(messages=list(messages), **others)


def only_fault(row: bytes) -> DatasetFault:
    """Of a file whose second row is `row`."""
    (fault,) = faults_of(GOOD, row)
    assert fault.line == 2
    assert fault.mend
    return fault


def faults_of(*rows: bytes) -> tuple[DatasetFault, ...]:
    found = judge([b"\n".join(rows)])
    assert not isinstance(found, Content)
    return found


def content_of(*rows: bytes) -> Content:
    found = judge([b"\n".join(rows)])
    assert isinstance(found, Content), found
    return found


def called(**function: Any) -> dict[str, Any]:
    return {**CALLING, "tool_calls": [{"type": "function", "function": function}]}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b'{"text": "\xff"}', "The row is not UTF-8 at its byte 11."),
        (b"not json", "The row is not JSON: Expecting value at character 1."),
        (b'{"messages": 1e', "The row is not JSON: Expecting ',' delimiter at character 15."),
        (b'{"a": 1} {"b": 2}', "The row is not JSON: more text after character 8."),
        ('{"a": "ä"} x'.encode(), "The row is not JSON: more text after character 10."),
        (b'{"a": "tab\there"}', "The row is not JSON: Invalid control character at at character 11."),
        (b"[" * 100_000, "It is nested deeper than 64 levels."),
        (b'{"n": ' + b"1" * 5000 + b"}", "The row is not strict JSON: Exceeds the limit"),
        (b'{"n": NaN}', "The row is not strict JSON: NaN is not a JSON number."),
        (b'{"n": [-Infinity]}', "The row is not strict JSON: -Infinity is not a JSON number."),
        (b'{"n": 1e999}', "The row is not strict JSON: the number 1e999 is too large."),
        (b'{"role": 1, "role": 2}', "The row is not strict JSON: the key 'role' is there twice."),
        (b'{"role": 1, "\\u0072ole": 2}', "The row is not strict JSON: the key 'role' is there twice."),
        (b'{"a": {"x": 1, "y": 2, "x": 3}}', "The row is not strict JSON: the key 'x' is there twice."),
        (b"[]", "The row is a list, not an object."),
        (b'"text"', "The row is a string, not an object."),
        (b"null", "The row is null, not an object."),
        (b"7", "The row is a number, not an object."),
        (b"   ", "The row is empty."),
        (b"", "The row is empty."),
    ],
)
def test_a_line_that_is_no_strict_object_is_told_with_its_place(row: bytes, message: str) -> None:
    (fault,) = faults_of(GOOD, row, GOOD)

    assert fault.message.startswith(message)
    assert (fault.line, fault.field) == (2, "")
    assert fault.mend


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        (line(a=1), "messages", "neither messages, nor prompt and completion, nor text"),
        (line(messages={}), "messages", "It is an object, not a list."),
        (line(messages=[]), "messages", "No assistant turn"),
        (chat(USER), "messages", "No assistant turn"),
        (chat(ANSWER, USER), "messages", "No assistant turn answers anybody"),
        (chat("Hi"), "messages[0]", "It is a string, not an object."),
        (chat({"content": "Hi"}), "messages[0].role", "The role is missing."),
        (chat({"role": ["user"], "content": "Hi"}), "messages[0].role", "The role is a list, not a string."),
        (chat({"role": {}, "content": "Hi"}), "messages[0].role", "The role is an object, not a string."),
        (chat({"role": "human", "content": "Hi"}), "messages[0].role", "The role 'human' is unknown."),
        (chat(USER, SYSTEM, ANSWER), "messages[1].role", "The system message is not the first."),
        (chat(USER, {**ANSWER, "content": " \n"}), "messages[1].content", "The content is empty."),
        (chat({**USER, "content": None}), "messages[0].content", "The content is missing."),
        (chat({"role": "user"}), "messages[0].content", "The content is missing."),
        (chat({**USER, "content": 7}), "messages[0].content", "The content is a number, not a string."),
        (chat({**USER, "content": [{"type": "text"}]}), "messages[0].content", "The content is a list"),
        (chat({**USER, "content": "\ud83d"}), "messages[0].content", "half of a surrogate pair"),
        (chat(USER, {**ANSWER, "function_call": {}}), "messages[1].function_call", "the old way"),
        (line(messages=[USER, ANSWER], text="x"), "text", "messages and text"),
        (line(prompt="a", completion="b", text="c"), "completion", "prompt and completion and text"),
    ],
)
def test_a_row_of_the_wrong_shape_is_told_with_its_field(row: bytes, field: str, message: str) -> None:
    fault = only_fault(row)

    assert fault.field == field
    assert message in fault.message


@pytest.mark.parametrize(
    ("row", "mend"),
    [
        (chat({"role": "gpt", "content": "x"}), 'Write "assistant".'),
        (chat({"role": "Human", "content": "x"}), 'Write "user".'),
        (chat({"role": "User", "content": "x"}), 'Write "user".'),
        (chat({"role": "robot", "content": "x"}), "Use one of assistant, system, tool, user."),
        (line(conversations=[]), 'Rename "conversations" to "messages"'),
        (line(instruction="a", input="", output="b"), 'Write "instruction" and "input" together as "prompt"'),
        (line(question="a", answer="b"), 'Rename "question" to "prompt"'),
    ],
)
def test_what_is_known_from_other_tools_gets_its_own_mend(row: bytes, mend: str) -> None:
    assert only_fault(row).mend.startswith(mend)


# -- prompts and texts -------------------------------------------------------------------------------------


def test_prompts_with_completions_are_a_format() -> None:
    content = content_of(line(prompt="2+2=", completion=" 4"), line(prompt="3+3=", completion=" 6"))

    assert content.report.format is RowFormat.PROMPT
    # 6 bytes are 2 tokens of 4 bytes, and 4 stand for the ends.
    assert (content.rows, content.report.tokens, content.report.roles) == (2, 12, {})


def test_texts_are_a_format() -> None:
    content = content_of(line(text="Once upon a time"))

    assert (content.report.format, content.report.tokens) == (RowFormat.TEXT, 4 + 4)


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        (line(prompt="a"), "completion", "The completion is missing."),
        (line(completion="a"), "prompt", "The prompt is missing."),
        (line(prompt="", completion="a"), "prompt", "The prompt is empty."),
        (line(prompt=[USER], completion="a"), "prompt", "The prompt is a list, not a string."),
        (line(text=None), "text", "The text is null, not a string."),
        (line(text=" "), "text", "The text is empty."),
        (line(text="\udc00"), "text", "Character 1 is half of a surrogate pair."),
    ],
)
def test_a_prompt_or_text_of_the_wrong_type_is_told(row: bytes, field: str, message: str) -> None:
    (fault,) = faults_of(row)

    assert (fault.line, fault.field, fault.message) == (1, field, message)


def test_mixed_formats_are_a_fault_of_the_later_rows() -> None:
    first, second = faults_of(line(text="a"), GOOD, line(text="b"), line(prompt="a", completion="b"))

    assert (first.line, first.field) == (2, "messages")
    assert (second.line, second.field) == (4, "prompt")
    assert first.message == "Mixed formats: the row is chat, but the rows before are text."


# -- tools -------------------------------------------------------------------------------------------------


def test_a_chat_with_tools_is_counted() -> None:
    content = content_of(
        chat(SYSTEM, USER, CALLING, RESULT, ANSWER, tools=[WEATHER]),
        chat(USER, CALLING, RESULT, ANSWER),
        GOOD,
    )

    assert content.report.tool_rows == 2
    assert content.report.roles == {"system": 1, "user": 3, "assistant": 5, "tool": 2}
    assert content.report.unused_fields == ()


@pytest.mark.parametrize(
    "messages",
    [
        [USER, CALLING],
        [USER, {**CALLING, "content": "Let me see."}, RESULT, ANSWER],
        [USER, called(name="weather", arguments='{"city": "Oslo"}'), {"role": "tool", "content": ""}, ANSWER],
        [USER, called(name="weather"), {"role": "tool", "name": "weather", "content": "rain"}, ANSWER],
        [USER, {**ANSWER, "tool_calls": None}],
        [USER, CALLING, RESULT, CALLING, RESULT, ANSWER, USER, ANSWER],
    ],
)
def test_tools_may_be_called_in_many_ways(messages: list[Any]) -> None:
    content = content_of(chat(*messages), chat(*messages, tools=[WEATHER]))

    assert content.report.unused_fields == ()


@pytest.mark.parametrize(
    ("messages", "field", "message"),
    [
        ([USER, RESULT, ANSWER], "messages[1].role", "the assistant has called none"),
        ([USER, ANSWER, RESULT], "messages[2].role", "the assistant has called none"),
        ([USER, CALLING, USER, ANSWER], "messages[2]", "have not answered"),
        ([USER, CALLING, CALLING], "messages[2].tool_calls", "have not answered"),
        ([USER, CALLING, {**RESULT, "tool_call_id": "x"}], "messages[2].tool_call_id", "No call before"),
        ([USER, CALLING, {**RESULT, "content": None}], "messages[2].content", "The content is missing."),
        ([USER, {**CALLING, "tool_calls": []}], "messages[1].tool_calls", "not a list of calls"),
        ([USER, {**CALLING, "tool_calls": {}}], "messages[1].tool_calls", "not a list of calls"),
        ([USER, {**CALLING, "tool_calls": ["x"]}], "messages[1].tool_calls[0].function", "has no function"),
        ([USER, {**CALLING, "tool_calls": [CALL, CALL]}], "messages[1].tool_calls[1].id", "of its own"),
        ([USER, called(arguments={})], "messages[1].tool_calls[0].function.name", "has no name"),
        (
            [USER, called(name="weather", arguments="{")],
            "messages[1].tool_calls[0].function.arguments",
            "The string is not JSON.",
        ),
        (
            [USER, called(name="weather", arguments="[]")],
            "messages[1].tool_calls[0].function.arguments",
            "They are a list, not an object.",
        ),
        ([USER, called(name="news")], "messages[1].tool_calls[0].function.name", "none of the chat's tools"),
    ],
)
def test_calls_of_the_wrong_shape_are_told(messages: list[Any], field: str, message: str) -> None:
    fault = only_fault(chat(*messages, tools=[WEATHER]))

    assert fault.field == field
    assert message in fault.message


@pytest.mark.parametrize(
    ("tools", "field", "message"),
    [
        ({"a": 1}, "tools", "It is an object, not a list."),
        (["weather"], "tools[0].function", "It has no function."),
        ([{**WEATHER, "type": "web"}], "tools[0].type", "It is not a function."),
        ([{"function": {"name": ""}}], "tools[0].function.name", "The function has no name."),
        ([{"function": {"name": "a", "parameters": []}}], "tools[0].function.parameters", "They are a list"),
        ([WEATHER, WEATHER], "tools[1].function.name", "The tool 'weather' is there twice."),
    ],
)
def test_tools_of_the_wrong_shape_are_told(tools: Any, field: str, message: str) -> None:
    fault = only_fault(chat(USER, ANSWER, tools=tools))

    assert fault.field == field
    assert message in fault.message


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("row", "field"),
    [
        (chat(USER, ANSWER, extra=nested(65)), "extra"),
        (chat(USER, {**ANSWER, "extra": nested(65)}), "messages[].extra"),
        (chat(USER, ANSWER, tools=[{"function": {"name": "a", "x": nested(62)}}]), "tools"),
        (
            chat(USER, called(name="a", arguments={"x": nested(63)})),
            "messages[1].tool_calls[0]",
        ),
    ],
)
def test_what_is_nested_too_deep_is_told(row: bytes, field: str) -> None:
    assert only_fault(row) == DatasetFault(
        line=2, field=field, message="It is nested deeper than 64 levels.", mend="Flatten it."
    )


def test_64_levels_are_not_too_deep() -> None:
    assert content_of(chat(USER, ANSWER, extra=nested(64))).rows == 1


def test_fields_that_no_training_reads_are_told_once() -> None:
    content = content_of(
        chat(USER, {**ANSWER, "weight": 0}, id=1),
        chat(USER, {**ANSWER, "weight": 1}, id=2),
        line(messages=[USER, ANSWER]),
    )

    assert sorted(content.report.unused_fields) == ["id", "messages[].weight"]


def test_no_more_than_twenty_of_them_are_told() -> None:
    content = content_of(*(line(text="a", **{f"f{number}": 1}) for number in range(30)))

    assert content.report.unused_fields == tuple(f"f{number}" for number in range(20))
