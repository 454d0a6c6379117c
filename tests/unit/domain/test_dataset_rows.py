"""The rows of a dataset and what can be wrong with them."""

from __future__ import annotations

import hashlib
import json

import pytest

from tensorant.domain.dataset_rows import MAX_FAULTS, MAX_ROW_BYTES, Report

GOOD = b'{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}'


def report_on(content: bytes, chunk: int = 1 << 20) -> Report:
    report = Report()
    chunks = [content[start : start + chunk] for start in range(0, len(content), chunk)]
    assert b"".join(report.reading(chunks)) == content
    return report


def row(*messages: object) -> bytes:
    return json.dumps({"messages": list(messages)}).encode()


@pytest.mark.parametrize("chunk", [1, 3, 64, 1 << 20])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_rows_bytes_and_hash_do_not_depend_on_chunks(chunk: int, end: bytes) -> None:
    content = GOOD + b"\n" + GOOD + end

    report = report_on(content, chunk)

    assert (report.rows, report.size, report.faults) == (2, len(content), [])
    assert report.sha256 == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("line", "field", "message"),
    [
        (b'{"a": "\xff"}', "", "not UTF-8"),
        (b"not json", "", "not JSON"),
        (b'{"messages": 1e', "", "not JSON"),
        (b"[" * 100_000, "", "not JSON"),
        (b'{"n": ' + b"1" * 5000 + b"}", "", "not JSON"),
        (b"[]", "messages", "no list of messages"),
        (b'"text"', "messages", "no list of messages"),
        (b"{}", "messages", "no list of messages"),
        (b'{"messages": {}}', "messages", "no list of messages"),
        (b'{"messages": []}', "messages", "No assistant turn"),
        (row({"role": "user", "content": "Hi"}), "messages", "No assistant turn"),
        (row("Hi"), "messages[0].role", "role is unknown"),
        (row({"content": "Hi"}), "messages[0].role", "role is unknown"),
        (row({"role": "human", "content": "Hi"}), "messages[0].role", "role is unknown"),
        (row({"role": ["user"], "content": "Hi"}), "messages[0].role", "role is unknown"),
        (row({"role": {}, "content": "Hi"}), "messages[0].role", "role is unknown"),
        (
            row({"role": "user", "content": "Hi"}, {"role": "assistant", "content": " \n"}),
            "messages[1].content",
            "content is empty",
        ),
        (row({"role": "user", "content": None}), "messages[0].content", "content is empty"),
        (row({"role": "user"}), "messages[0].content", "content is empty"),
        (b"   ", "", "row is empty"),
    ],
)
def test_a_faulty_row_is_named_with_field_and_mend(line: bytes, field: str, message: str) -> None:
    report = report_on(GOOD + b"\n" + line + b"\n")

    (fault,) = report.faults
    assert (fault.line, fault.field) == (2, field)
    assert message in fault.message
    assert fault.mend
    assert report.rows == 1


@pytest.mark.parametrize("content", [b"", b"\n"])
def test_a_file_without_rows_is_a_fault(content: bytes) -> None:
    assert len(report_on(content).faults) == 1


@pytest.mark.parametrize("chunk", [100_000, 1 << 24])
def test_a_row_that_is_too_long_is_one_fault_and_the_next_is_read(chunk: int) -> None:
    long = b'{"messages": "' + b"x" * (3 * MAX_ROW_BYTES) + b'"}'

    report = report_on(long + b"\n" + GOOD, chunk)

    (fault,) = report.faults
    assert "longer than 1,000,000 bytes" in fault.message
    assert (fault.line, report.rows) == (1, 1)


def test_the_longest_row_is_good() -> None:
    padding = MAX_ROW_BYTES - len(GOOD)

    assert report_on(GOOD + b" " * padding).faults == []
    assert len(report_on(GOOD + b" " * (padding + 1)).faults) == 1


def test_only_the_first_hundred_faults_are_told() -> None:
    report = report_on(b"no\n" * 250)

    assert len(report.faults) == MAX_FAULTS == 100
    assert report.faults[-1].line == 100


def test_memory_stays_bounded_while_a_row_has_no_end() -> None:
    report = Report()
    for _ in report.reading(b"x" * 100_000 for _ in range(100)):
        assert len(report._rest) <= MAX_ROW_BYTES + 1
