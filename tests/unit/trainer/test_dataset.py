from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from tensorant.contract import BaseModelRef, DatasetRef, JobSpec, LoraSpec, TrainerExit, TrainingSpec
from tensorant_trainer.dataset import Conversation, fetch_dataset, read_conversations, sampled
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


def test_rows_are_read_and_numbered_as_an_editor_does(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(DATASET + b"\n" + DATASET)

    assert [row.number for row in read_conversations(path)] == [1, 3]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "Line 2 of the dataset cannot be used: Expecting property name"),
        (b"\xff", "Line 2 of the dataset cannot be used: 'utf-8' codec"),
        (b"[]", "Line 2 of the dataset cannot be used: a row must be a JSON object"),
        (b"{}", "messages: Field required"),
        (b'{"messages": []}', "messages: Tuple should have at least 1"),
        (
            b'{"messages": [{"role": "bot", "content": "hi"}, {"role": "assistant", "content": "yo"}]}',
            "messages.0.role",
        ),
        (b'{"messages": [{"role": "user"}, {"role": "assistant", "content": "yo"}]}', "messages.0.content"),
    ],
)
def test_a_faulty_line_is_named(line: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(DATASET + line + b"\n")

    with pytest.raises(TrainerError) as caught:
        read_conversations(path)

    assert said in caught.value.message
    assert caught.value.code is TrainerExit.DATASET


def test_an_empty_dataset_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n")

    with pytest.raises(TrainerError, match="has no rows"):
        read_conversations(path)


def test_a_trial_takes_the_same_rows_for_the_same_seed_in_their_order() -> None:
    rows = [Conversation.model_validate({**ROW, "number": number}) for number in range(1, 101)]

    chosen = [row.number for row in sampled(rows, 10, seed=3)]

    assert chosen == sorted(set(chosen))
    assert len(chosen) == 10
    assert chosen == [row.number for row in sampled(rows, 10, seed=3)]
    assert chosen != [row.number for row in sampled(rows, 10, seed=4)]


@pytest.mark.parametrize("count", [None, 2, 5])
def test_without_a_smaller_sample_all_rows_are_taken(count: int | None) -> None:
    rows = [Conversation.model_validate({**ROW, "number": number}) for number in (1, 2)]

    assert sampled(rows, count, seed=0) == rows
