from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from tensorant.contract import BaseModelRef, DatasetRef, JobSpec, LoraSpec, TrainerExit, TrainingSpec
from tensorant_trainer.dataset import Completion, Conversation, Passage, Row, fetch_dataset, read_rows
from tensorant_trainer.errors import TrainerError
from tensorant_trainer.storage import Rights
from tests.support.fake_agent import FakeAgent

if TYPE_CHECKING:
    from pathlib import Path

ROW = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}
DATASET = json.dumps(ROW).encode() + b"\n"
DATASET_PATH = "/store/dataset.jsonl"


def reference(content: bytes) -> DatasetRef:
    return DatasetRef(sha256=hashlib.sha256(content).hexdigest(), rows=1, bytes=len(content))


def job(dataset: DatasetRef) -> JobSpec:
    return JobSpec(
        run_id="run-1",
        base=BaseModelRef(repository="a/b", revision="main"),
        lora=LoraSpec(),
        training=TrainingSpec(),
        dataset=dataset,
    )


def no_pause(seconds: float) -> None:
    pass


def fetched(agent: FakeAgent, expected: DatasetRef, directory: Path) -> Path:
    agent.spec = job(expected)
    return fetch_dataset(Rights(agent.grants), expected, directory, pause=no_pause)


def test_the_agreed_dataset_is_fetched(tmp_path: Path) -> None:
    with FakeAgent(dataset=DATASET) as agent:
        path = fetched(agent, reference(DATASET), tmp_path)

    assert path.read_bytes() == DATASET


def test_storage_that_is_away_for_a_moment_is_asked_again(tmp_path: Path) -> None:
    with FakeAgent(dataset=DATASET) as agent:
        agent.faults[DATASET_PATH].extend([503, 500])
        path = fetched(agent, reference(DATASET), tmp_path)

    assert path.read_bytes() == DATASET
    assert agent.calls == [f"GET {DATASET_PATH}"] * 3


@pytest.mark.parametrize("content", [b"", DATASET + b"x", DATASET.replace(b"yo", b"no")])
def test_another_dataset_is_refused(content: bytes, tmp_path: Path) -> None:
    with FakeAgent(dataset=content) as agent, pytest.raises(TrainerError) as caught:
        fetched(agent, reference(DATASET), tmp_path)

    assert caught.value.code is TrainerExit.DATASET
    assert caught.value.exit_code == 11


def test_a_missing_dataset_is_a_fault_of_the_storage_and_names_no_url(tmp_path: Path) -> None:
    with FakeAgent() as agent:
        agent.faults[DATASET_PATH].append(404)
        with pytest.raises(TrainerError) as caught:
            fetched(agent, reference(DATASET), tmp_path)

    assert caught.value.code is TrainerExit.STORAGE
    assert caught.value.message == "The storage answered 404 when asked to read the dataset."


def rows_of(directory: Path, content: bytes, *, sample: int | None = None, seed: int = 0) -> list[Row]:
    path = directory / "rows.jsonl"
    path.write_bytes(content)
    return read_rows(path, sample=sample, seed=seed)


def test_rows_are_read_and_numbered_as_an_editor_does(tmp_path: Path) -> None:
    assert [row.number for row in rows_of(tmp_path, DATASET + b"\n" + DATASET)] == [1, 3]


def test_each_format_is_read(tmp_path: Path) -> None:
    chat, prompt, text = rows_of(
        tmp_path, DATASET + b'{"prompt": "2+2=", "completion": "4", "id": 9}\n{"text": "Once"}\n'
    )

    assert isinstance(chat, Conversation)
    assert prompt == Completion(number=2, prompt="2+2=", completion="4")
    assert text == Passage(number=3, text="Once")


CALLED = {"type": "function", "function": {"name": "weather", "arguments": {"city": "Oslo"}}}


def test_a_chat_with_tools_is_read_as_templates_want_it(tmp_path: Path) -> None:
    function = {"name": "weather", "arguments": '{"city": "Oslo"}'}
    row = {
        "messages": [
            {"role": "user", "content": "Rain?"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": function}]},
            {"role": "tool", "tool_call_id": "c1", "content": "yes"},
            {"role": "assistant", "content": "It rains.", "tool_calls": None, "weight": 1},
        ],
        "tools": [{"type": "function", "function": {"name": "weather"}}],
    }

    (chat,) = rows_of(tmp_path, json.dumps(row).encode())

    assert isinstance(chat, Conversation)
    assert chat.turns() == [
        {"role": "user", "content": "Rain?"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", **CALLED}]},
        {"role": "tool", "content": "yes", "tool_call_id": "c1"},
        {"role": "assistant", "content": "It rains."},
    ]
    assert (chat.tools, chat.functions()) == (tuple(row["tools"]), {"weather"})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "Line 2 of the dataset cannot be used: Expecting property name"),
        (b"\xff", "Line 2 of the dataset cannot be used: 'utf-8' codec"),
        (b"[]", "Line 2 of the dataset cannot be used: a row must be a JSON object"),
        (b"{}", "messages: Field required"),
        (b'{"prompt": "a"}', "completion: Field required"),
        (b'{"text": ""}', "text: String should have at least 1 character"),
        (b'{"messages": []}', "messages: Tuple should have at least 1"),
        (
            b'{"messages": [{"role": "bot", "content": "hi"}, {"role": "assistant", "content": "yo"}]}',
            "messages.0.role",
        ),
        (b'{"messages": [{"role": "user", "content": 7}]}', "messages.0.content"),
        (
            b'{"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": "{"}}]}]}',
            "messages.0.tool_calls.0.function.arguments",
        ),
    ],
)
def test_a_faulty_line_is_named(line: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(TrainerError) as caught:
        rows_of(tmp_path, DATASET + line + b"\n")

    assert said in caught.value.message
    assert caught.value.code is TrainerExit.DATASET


def test_an_empty_dataset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match="has no rows"):
        rows_of(tmp_path, b"\n")


HUNDRED = b"".join(b'{"text": "row %d"}\n' % number for number in range(1, 101))


def test_a_trial_takes_the_same_rows_for_the_same_seed_in_their_order(tmp_path: Path) -> None:
    def chosen(seed: int) -> list[int]:
        return [row.number for row in rows_of(tmp_path, HUNDRED, sample=10, seed=seed)]

    # sorted(1 + index for index in random.Random(3).sample(range(100), 10)), in Python 3.11 and 3.13
    assert chosen(3) == [9, 17, 31, 48, 61, 70, 75, 76, 78, 81]
    assert chosen(4) != chosen(3)


def test_rows_outside_the_sample_are_not_even_parsed(tmp_path: Path) -> None:
    broken = HUNDRED.replace(b'{"text": "row 1"}', b"broken").replace(b'{"text": "row 100"}', b"broken")

    assert len(rows_of(tmp_path, broken, sample=10, seed=3)) == 10


@pytest.mark.parametrize("count", [None, 2, 5])
def test_without_a_smaller_sample_all_rows_are_taken(count: int | None, tmp_path: Path) -> None:
    assert [row.number for row in rows_of(tmp_path, DATASET * 2, sample=count)] == [1, 2]
