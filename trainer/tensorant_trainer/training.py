"""The training itself: transformers' Trainer over masked samples, watched step by step."""

from __future__ import annotations

import gc
import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments, set_seed

from tensorant.contract import Heartbeat, TrainerExit, TrainingMetrics
from tensorant_trainer.base_model import has_gpu, load_model, with_adapter
from tensorant_trainer.errors import TrainerError
from tensorant_trainer.masking import IGNORED, Sample
from tensorant_trainer.measures import measured, modules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tensorant.contract import AdapterNorms, BaseModules, JobSpec, TrainingSpec

T = TypeVar("T")

MAX_GRADIENT_NORM = 1.0
LAST_STEPS = 5
"""The last loss is the mean over this many steps, or over a quarter of a short run's."""


class Watch(Protocol):
    """What the run around the training wants to know, and may say."""

    def step(self, heartbeat: Heartbeat) -> None:
        """Called after every step."""

    def check(self) -> None:
        """Called between batches; raises `TrainerError` to end the training."""

    def warn(self, message: str) -> None: ...


@dataclass(frozen=True)
class Trained:
    """A finished training: the model with its adapter, and what the manifest says of it."""

    model: Any
    steps_done: int
    steps_total: int
    metrics: TrainingMetrics
    norms: AdapterNorms
    base_modules: BaseModules | None


def steps_planned(training: TrainingSpec, samples: int) -> int:
    """Optimizer steps: the epochs' worth, and no more than `max_steps` if that is set."""
    steps = max(1, math.ceil(training.epochs * math.ceil(samples / training.batch_size)))
    return steps if training.max_steps is None else min(steps, training.max_steps)


def warmup_steps(training: TrainingSpec, steps: int) -> int:
    """Rounded down: with a ratio under a half, a run always has steps after its warm-up, even a run of one.

    (The first warm-up step has learning rate 0; a run of nothing else would return an untrained adapter.)
    """
    return math.floor(training.warmup_ratio * steps)


def train(spec: JobSpec, samples: Sequence[Sample], *, pad_id: int, scratch: Path, watch: Watch) -> Trained:
    """Train an adapter. Raises `TrainerError`: out of memory, diverged, base model, and all of `watch`."""

    def attempt(micro_batch: int) -> Trained:
        return _train_once(spec, samples, micro_batch, pad_id=pad_id, scratch=scratch, watch=watch)

    return within_memory(attempt, spec.training.batch_size, warn=watch.warn)


def within_memory(attempt: Callable[[int], T], batch: int, *, warn: Callable[[str], None]) -> T:
    """Attempt with the whole batch at a time; halve that and begin again whenever the memory does not suffice.

    A step learns from the same batch each time, by gradient accumulation. Raises `TrainerError` (out of
    memory) if a single row is too much.
    """
    micro_batch = batch
    while True:
        try:
            return attempt(micro_batch)
        except (torch.OutOfMemoryError, MemoryError) as error:
            if micro_batch == 1:
                raise TrainerError(
                    TrainerExit.OUT_OF_MEMORY,
                    "The memory does not suffice even for one row at a time."
                    " Choose a GPU with more memory, a smaller base model, or fewer `max_tokens`.",
                ) from error
        _free_memory()  # here, where the error no longer holds on to what filled it
        micro_batch = smaller_micro_batch(micro_batch, batch)
        warn(f"Out of memory; beginning again with {micro_batch} rows at a time.")


def smaller_micro_batch(micro_batch: int, batch: int) -> int:
    """The largest divisor of `batch` that is at most half of `micro_batch`, so that a step stays the same."""
    return next(size for size in range(micro_batch // 2, 0, -1) if batch % size == 0)


def _train_once(
    spec: JobSpec, samples: Sequence[Sample], micro_batch: int, *, pad_id: int, scratch: Path, watch: Watch
) -> Trained:
    set_seed(spec.training.seed)
    base = load_model(spec.base)
    base_modules = modules_of(base)
    model = with_adapter(base, spec.lora)
    steps = steps_planned(spec.training, len(samples))
    observer = StepObserver(watch, steps)
    trainer = Trainer(
        model=model,
        args=_arguments(spec.training, steps, micro_batch, scratch),
        train_dataset=list(samples),
        data_collator=lambda rows: collate(rows, pad_id),
        callbacks=[observer],
    )
    trainer.remove_callback(PrinterCallback)
    started = time.monotonic()
    trainer.train()
    trainable = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    metrics = TrainingMetrics(
        first_loss=observer.losses[0],
        last_loss=last_loss(observer.losses),
        trainable_parameters=trainable,
        train_seconds=round(time.monotonic() - started, 3),
    )
    return Trained(model, len(observer.losses), steps, metrics, measured(model), base_modules)


def _arguments(training: TrainingSpec, steps: int, micro_batch: int, scratch: Path) -> TrainingArguments:
    gpu = has_gpu()
    return TrainingArguments(
        output_dir=str(scratch),
        per_device_train_batch_size=micro_batch,
        gradient_accumulation_steps=training.batch_size // micro_batch,
        max_steps=steps,
        learning_rate=training.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=warmup_steps(training, steps),
        max_grad_norm=MAX_GRADIENT_NORM,
        seed=training.seed,
        data_seed=training.seed,
        bf16=gpu,
        use_cpu=not gpu,
        dataloader_pin_memory=gpu,
        activation_checkpointing=gpu,
        activation_checkpointing_kwargs={"use_reentrant": False},
        logging_steps=1,
        logging_nan_inf_filter=False,  # its default would show a NaN loss as 0.0
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        prediction_loss_only=True,
    )


def collate(samples: Sequence[Sample], pad_id: int) -> dict[str, torch.Tensor]:
    """Pad on the right; what is padding is told by its position, since `pad_id` may be a real token too."""
    width = max(len(sample.input_ids) for sample in samples)

    def padded(rows: list[tuple[int, ...]], filler: int) -> torch.Tensor:
        return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows])

    return {
        "input_ids": padded([sample.input_ids for sample in samples], pad_id),
        "labels": padded([sample.labels for sample in samples], IGNORED),
        "attention_mask": padded([(1,) * len(sample.input_ids) for sample in samples], 0),
    }


def last_loss(losses: Sequence[float]) -> float:
    """Mean of the last few: single steps are noisy, and early ones belong to another model."""
    count = max(1, min(LAST_STEPS, len(losses) // 4))
    return sum(losses[-count:]) / count


@dataclass
class StepObserver(TrainerCallback):  # type: ignore[misc] # transformers is not typed here
    """Reports each step, and ends the training when it diverges or somebody asks to."""

    watch: Watch
    steps_total: int
    losses: list[float] = field(default_factory=list)
    clock: Callable[[], float] = time.monotonic
    _started: float = 0.0

    def on_train_begin(self, *_args: object, **_others: object) -> None:
        self._started = self.clock()

    def on_substep_end(self, *_args: object, **_others: object) -> None:
        self.watch.check()

    def on_step_end(self, *_args: object, **_others: object) -> None:
        self.watch.check()

    def on_log(
        self, _args: object, state: Any, _control: object, logs: dict[str, float], **_others: object
    ) -> None:
        if "loss" not in logs:
            return  # the summary at the end
        loss, norm = float(logs["loss"]), float(logs.get("grad_norm", 0.0))
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise TrainerError(
                TrainerExit.DIVERGED,
                f"The training diverged at step {state.global_step}: loss {loss}, gradient norm {norm}."
                " Choose a lower learning rate; if it fails at step 1, check the base model.",
            )
        self.losses.append(loss)
        done = len(self.losses)
        left = (self.clock() - self._started) / done * (self.steps_total - done)
        self.watch.step(
            Heartbeat(step=done, steps_total=self.steps_total, loss=loss, seconds_left=round(left, 1))
        )


def _free_memory() -> None:
    gc.collect()
    if has_gpu():
        torch.cuda.empty_cache()
