"""One pass over a file: its normal form, its limits, what is counted."""

from __future__ import annotations

import hashlib
import json
import tracemalloc

import pytest

from tensorant.domain.datasets.judging import MAX_FAULTS, Content, judge, normal_form
from tensorant.domain.datasets.report import Compression, DatasetFault, Lengths
from tensorant.domain.datasets.rows import MAX_ROW_BYTES, TOO_LONG, rows
from tensorant.domain.datasets.tally import Tally, tokens

GOOD = b'{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}'
OTHER = b'{"messages": [{"role": "user", "content": "Ho"}, {"role": "assistant", "content": "Hello"}]}'


def pieces(content: bytes, size: int) -> list[bytes]:
    return [content[start : start + size] for start in range(0, len(content), size)]


def content_of(file: bytes, chunk: int = 1 << 20) -> Content:
    found = judge(pieces(file, chunk))
    assert isinstance(found, Content), found
    return found


def faults_of(file: bytes, chunk: int = 1 << 20) -> tuple[DatasetFault, ...]:
    found = judge(pieces(file, chunk))
    assert not isinstance(found, Content)
    return found


@pytest.mark.parametrize("chunk", [1, 3, 64, 1 << 20])
@pytest.mark.parametrize("between", [b"\n", b"\r\n", b" \t\n  "])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_line_ends_and_chunks_make_no_other_content(chunk: int, between: bytes, end: bytes) -> None:
    file, normal = GOOD + between + OTHER + end, GOOD + b"\n" + OTHER + b"\n"

    content = content_of(file, chunk)

    assert (content.rows, content.bytes) == (2, len(normal))
    assert content.sha256 == hashlib.sha256(normal).hexdigest()
    assert b"".join(normal_form(pieces(file, chunk))) == normal


def test_a_file_is_described() -> None:
    content = content_of((GOOD + b"\n") * 3 + OTHER)

    report = content.report
    # "Hi" and "Hello" are 7 bytes, hence 2 tokens; two messages add 4 each.
    assert report.tokens == 4 * 10
    assert report.lengths == Lengths(half=10, nine_in_ten=10, ninety_nine_in_hundred=10, longest=10)
    assert report.roles == {"user": 4, "assistant": 4}
    assert (report.duplicates, report.compared_rows) == (2, 4)
    assert (report.compression, report.uploaded_bytes) == (Compression.NONE, 4 * len(GOOD) + 3)


@pytest.mark.parametrize("file", [b"", b"\n"])
def test_a_file_without_rows_is_a_fault(file: bytes) -> None:
    (fault,) = faults_of(file)

    assert fault.message in {"The file has no rows.", "The row is empty."}


def test_a_byte_order_mark_is_a_fault_of_the_first_row_alone() -> None:
    (fault,) = faults_of(b"\xef\xbb\xbf" + GOOD + b"\n" + OTHER, 2)

    assert (fault.line, fault.message) == (1, "The file begins with a byte order mark.")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_another_encoding_is_told_once(encoding: str) -> None:
    file = (GOOD.decode() + "\n").encode(encoding) * 3

    assert faults_of(file) == (
        DatasetFault(line=1, field="", message="The file is UTF-16 or UTF-32.", mend="Save it as UTF-8."),
    )


@pytest.mark.parametrize("chunk", [100_000, 1 << 24])
def test_a_row_that_is_too_long_is_one_fault_and_the_next_is_read(chunk: int) -> None:
    long = b'{"messages": "' + b"x" * (3 * MAX_ROW_BYTES) + b'"}'

    (fault, next_fault) = faults_of(long + b"\n" + GOOD + b"\nno", chunk)

    assert (fault.line, fault.message) == (1, "The row is longer than 1,000,000 bytes.")
    assert next_fault.line == 3


@pytest.mark.parametrize("chunk", [999, 1 << 16, 1 << 24])
def test_the_longest_row_is_good_and_one_byte_more_is_not(chunk: int) -> None:
    longest = b'{"text": "' + b"x" * (MAX_ROW_BYTES - len(b'{"text": ""}')) + b'"}'

    assert content_of(longest + b"\n" + longest, chunk).rows == 2
    assert [fault.line for fault in faults_of(longest + b"\n" + longest + b" \n", chunk)] == [2]


@pytest.mark.parametrize("chunk", [999, 1 << 16, 1 << 24])
def test_nothing_is_dropped_behind_a_long_run_of_blanks(chunk: int) -> None:
    (fault,) = faults_of(b'{"text": "a"}' + b" " * MAX_ROW_BYTES + b"rubbish", chunk)

    assert fault.message == "The row is longer than 1,000,000 bytes."


def test_reading_ends_at_a_hundred_faults() -> None:
    taken = []

    def endless() -> object:
        while True:
            taken.append(1)
            yield b"no\n" * 40

    found = judge(endless())  # type: ignore[arg-type]

    assert not isinstance(found, Content)
    assert (len(found), MAX_FAULTS, found[-1].line, len(taken)) == (100, 100, 100, 3)


def test_a_row_without_an_end_is_not_kept() -> None:
    tracemalloc.start()
    batches = list(rows(b"x" * 7 for _ in range(200_000)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert batches == [[TOO_LONG]]
    assert peak < 32 << 20  # the pieces of one row: 34 bytes more each than their seven


# -- counting ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "messages", "expected"), [(0, 1, 4), (1, 1, 5), (4, 1, 5), (5, 2, 10)])
def test_tokens_are_a_quarter_of_the_bytes_and_four_a_message(
    text: int, messages: int, expected: int
) -> None:
    assert tokens(text, messages) == expected


def test_lengths_are_by_nearest_rank() -> None:
    tally = Tally()
    for length in range(1, 201):  # 1 to 200 tokens
        tally.count(b"%d" % length, 4 * length, 0)

    assert tally.lengths() == Lengths(half=100, nine_in_ten=180, ninety_nine_in_hundred=198, longest=200)


def test_duplicates_are_counted_exactly() -> None:
    tally = Tally()
    for number in [*range(1000), *range(500), 7, 7]:
        tally.count(b"row %d" % number, 1, 1)

    assert (tally.rows, tally.compared, tally.duplicates()) == (1502, 1502, 502)


def test_text_is_measured_in_bytes_of_utf_8_however_it_is_escaped() -> None:
    escaped = json.dumps({"text": "日本語日"}).encode()  # 4 characters of 3 bytes: 12 bytes, 3 tokens
    plain = '{"text": "日本語日"}'.encode()

    assert content_of(escaped).report.tokens == content_of(plain).report.tokens == 3 + 4
