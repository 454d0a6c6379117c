"""The demo dataset is what demo/README.md promises."""

import json
from collections import Counter
from pathlib import Path

import pytest

DATASET = Path(__file__).parents[2] / "demo" / "dataset.jsonl"
FEWEST_ROWS = 200
ROW_LIMIT_CHARACTERS = 1_600
ANSWER_WORDS = range(30, 71)

Row = dict[str, list[dict[str, str]]]


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return DATASET.read_bytes().decode("utf-8", errors="strict").removesuffix("\n").split("\n")


@pytest.fixture(scope="module")
def rows(lines: list[str]) -> list[Row]:
    return [json.loads(line) for line in lines]


def content(row: Row, role: str) -> str:
    return next(message["content"] for message in row["messages"] if message["role"] == role)


def repeated(texts: list[str]) -> list[str]:
    return [text for text, count in Counter(texts).items() if count > 1]


def test_it_has_enough_rows(rows: list[Row]) -> None:
    assert len(rows) >= FEWEST_ROWS


def test_it_is_clean_utf_8_without_bom() -> None:
    raw = DATASET.read_bytes()

    assert not raw.startswith(b"\xef\xbb\xbf")
    assert raw.endswith(b"\n")
    assert b"\r" not in raw
    assert "\N{REPLACEMENT CHARACTER}" not in raw.decode("utf-8")


def test_each_row_is_one_conversation(rows: list[Row]) -> None:
    for row in rows:
        assert list(row) == ["messages"]
        assert [message["role"] for message in row["messages"]] == ["system", "user", "assistant"]
        assert all(set(message) == {"role", "content"} for message in row["messages"])
        assert all(message["content"] == message["content"].strip() != "" for message in row["messages"])


def test_the_system_prompt_never_changes(rows: list[Row]) -> None:
    assert len({content(row, "system") for row in rows}) == 1


def test_each_answer_says_what_why_and_mend(rows: list[Row]) -> None:
    for row in rows:
        labels = [line.partition(": ")[0] for line in content(row, "assistant").split("\n")]
        assert labels == ["What", "Why", "Mend"], content(row, "user")


def test_each_answer_is_short(rows: list[Row]) -> None:
    lengths = {content(row, "user"): len(content(row, "assistant").split()) for row in rows}

    assert {user: words for user, words in lengths.items() if words not in ANSWER_WORDS} == {}


def test_each_row_is_small(lines: list[str]) -> None:
    assert [line for line in lines if len(line) >= ROW_LIMIT_CHARACTERS] == []


def test_no_question_comes_twice(rows: list[Row]) -> None:
    assert repeated([content(row, "user").casefold() for row in rows]) == []


def test_no_line_of_an_answer_comes_twice(rows: list[Row]) -> None:
    answers = [content(row, "assistant").split("\n") for row in rows]

    assert repeated([line for answer in answers for line in answer]) == []
