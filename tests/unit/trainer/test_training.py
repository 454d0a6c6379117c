from __future__ import annotations

import errno
import math
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import torch

from tensorant.contract import BaseModelRef, EventType, Heartbeat, TrainerExit, TrainingSpec
from tensorant_trainer.adapter import plain
from tensorant_trainer.base_model import load_tokenizer
from tensorant_trainer.errors import TrainerError, as_trainer_error
from tensorant_trainer.job import RunWatch
from tensorant_trainer.masking import IGNORED, Sample
from tensorant_trainer.session import SessionFile
from tensorant_trainer.stop import Stop
from tensorant_trainer.training import (
    StepObserver,
    collate,
    last_loss,
    smaller_micro_batch,
    steps_planned,
    warmup_steps,
    within_memory,
)

if TYPE_CHECKING:
    from pathlib import Path


class RecordingWatch:
    def __init__(self) -> None:
        self.steps: list[Heartbeat] = []

    def step(self, heartbeat: Heartbeat) -> None:
        self.steps.append(heartbeat)

    def check(self) -> None:
        pass

    def warn(self, message: str) -> None:
        pass


class SilentProgress:
    def step(self, heartbeat: Heartbeat) -> None:
        pass

    def event(self, kind: EventType, message: str = "") -> None:
        pass


@pytest.mark.parametrize(
    ("epochs", "max_steps", "samples", "steps"),
    [
        (1.0, None, 200, 25),
        (1.0, None, 201, 26),
        (0.5, None, 200, 13),
        (2.0, 24, 200, 24),
        (1.0, 60, 200, 25),  # a limit, not a wish
        (0.01, None, 8, 1),
    ],
)
def test_steps_are_the_epochs_worth_within_the_limit(
    epochs: float, max_steps: int | None, samples: int, steps: int
) -> None:
    training = TrainingSpec(epochs=epochs, max_steps=max_steps, batch_size=8)

    assert steps_planned(training, samples) == steps


@pytest.mark.parametrize(
    ("ratio", "steps", "warmup"), [(0.03, 25, 0), (0.03, 100, 3), (0.49, 2, 0), (0.4, 1, 0)]
)
def test_a_run_is_never_all_warm_up(ratio: float, steps: int, warmup: int) -> None:
    assert warmup_steps(TrainingSpec(warmup_ratio=ratio), steps) == warmup


@pytest.mark.parametrize(("now", "batch", "then"), [(8, 8, 4), (6, 6, 3), (3, 6, 1), (7, 7, 1), (2, 512, 1)])
def test_a_smaller_micro_batch_still_divides_the_batch(now: int, batch: int, then: int) -> None:
    assert smaller_micro_batch(now, batch) == then


def test_a_batch_that_does_not_fit_is_halved_until_it_does() -> None:
    tried: list[int] = []
    warnings: list[str] = []

    def attempt(micro_batch: int) -> str:
        tried.append(micro_batch)
        if micro_batch > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return "trained"

    assert within_memory(attempt, 8, warn=warnings.append) == "trained"
    assert tried == [8, 4, 2]
    assert warnings[0] == "Out of memory; beginning again with 4 rows at a time."


def test_a_single_row_that_does_not_fit_ends_the_run() -> None:
    def attempt(_micro_batch: int) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(TrainerError) as caught:
        within_memory(attempt, 2, warn=lambda _: None)

    assert caught.value.exit_code == 20


def test_padding_is_masked_by_position_even_if_its_token_is_learned_elsewhere() -> None:
    end = 1  # the end of turn, and the padding
    samples = [Sample((5, 6, end), (IGNORED, 6, end)), Sample((5, end), (IGNORED, end))]

    batch = collate(samples, pad_id=end)

    assert batch["input_ids"].tolist() == [[5, 6, end], [5, end, end]]
    assert batch["labels"].tolist() == [[IGNORED, 6, end], [IGNORED, end, IGNORED]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 1, 0]]


def test_the_last_loss_is_a_mean_of_the_last_few() -> None:
    assert last_loss([4.0]) == 4.0
    assert last_loss([9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 2.0, 4.0]) == 3.0  # a quarter of eight
    assert last_loss([9.0] * 35 + [1.0, 2.0, 3.0, 4.0, 5.0]) == 3.0  # five at most


def test_a_step_is_told_with_the_time_that_is_left() -> None:
    times = iter([100.0, 104.0, 106.0])
    watch = RecordingWatch()
    observer = StepObserver(watch, steps_total=4, clock=lambda: next(times))

    observer.on_train_begin()
    observer.on_log(None, SimpleNamespace(global_step=1), None, logs={"loss": 3.0, "grad_norm": 1.0})
    observer.on_log(None, SimpleNamespace(global_step=2), None, logs={"loss": 2.0, "grad_norm": 1.0})
    observer.on_log(None, SimpleNamespace(global_step=2), None, logs={"train_loss": 2.5})

    assert watch.steps == [
        Heartbeat(step=1, steps_total=4, loss=3.0, seconds_left=12.0),
        Heartbeat(step=2, steps_total=4, loss=2.0, seconds_left=6.0),
    ]
    assert observer.losses == [3.0, 2.0]


@pytest.mark.parametrize(
    ("loss", "norm"), [(math.nan, 1.0), (math.inf, 1.0), (2.0, math.nan), (2.0, math.inf)]
)
def test_a_training_that_diverges_ends(loss: float, norm: float) -> None:
    observer = StepObserver(RecordingWatch(), steps_total=4)

    with pytest.raises(TrainerError, match="diverged at step 3") as caught:
        observer.on_log(None, SimpleNamespace(global_step=3), None, logs={"loss": loss, "grad_norm": norm})

    assert caught.value.exit_code == 21


def watch_with(seconds_left: float) -> RunWatch:
    session = SessionFile(
        url="http://127.0.0.1",
        session_token="token",
        heartbeat_seconds=60,
        deadline_at=datetime.now(UTC) + timedelta(seconds=seconds_left),
        run_id="run-1",
        attempt=1,
    )
    return RunWatch(session, SilentProgress(), Stop())


def test_a_run_ends_before_its_time_limit() -> None:
    watch_with(seconds_left=3600).check()

    with pytest.raises(TrainerError, match="time limit") as caught:
        watch_with(seconds_left=-1).check()
    assert caught.value.exit_code == 76


def test_sets_are_written_in_an_order_of_their_own() -> None:
    config = {"target_modules": {"v_proj", "q_proj"}, "kind": TrainerExit.DISK, "layers": (1, 2)}

    assert plain(config) == {"target_modules": ["q_proj", "v_proj"], "kind": "disk", "layers": [1, 2]}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "full"), TrainerExit.DISK),
        (RuntimeError("I/O error: No space left on device (os error 28)"), TrainerExit.DISK),
        (MemoryError(), TrainerExit.OUT_OF_MEMORY),
        (KeyError("x"), TrainerExit.BUG),
        (TrainerError(TrainerExit.TEMPLATE, "why"), TrainerExit.TEMPLATE),
    ],
)
def test_every_failure_has_a_code(error: Exception, code: TrainerExit) -> None:
    assert as_trainer_error(error).code is code


def test_a_base_model_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nothing").mkdir()  # so that it is looked for here and nowhere else

    with pytest.raises(TrainerError) as caught:
        load_tokenizer(BaseModelRef(repository="nothing", revision="main"))

    assert caught.value.code is TrainerExit.BASE_MODEL
    assert caught.value.message.startswith("nothing at main cannot be loaded: ")
