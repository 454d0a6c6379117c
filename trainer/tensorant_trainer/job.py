"""One run, from its grants to its adapter in storage."""

from __future__ import annotations

import logging
import platform
import shutil
import time
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tensorant.contract import EventType, Heartbeat, JobSpec, Manifest, TrainerExit
from tensorant.verification import Expected, FileArchive, verify
from tensorant_trainer import __version__
from tensorant_trainer.agent import AgentUnavailableError
from tensorant_trainer.archive import manifest_path, pack
from tensorant_trainer.dataset import Row, fetch_dataset, read_rows
from tensorant_trainer.errors import TrainerError
from tensorant_trainer.retry import retried
from tensorant_trainer.storage import Rights
from tensorant_trainer.upload import upload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorant.contract import Grants
    from tensorant_trainer.agent import AgentClient
    from tensorant_trainer.masking import Samples
    from tensorant_trainer.progress import Progress
    from tensorant_trainer.session import SessionFile
    from tensorant_trainer.stop import Stop
    from tensorant_trainer.training import Trained

log = logging.getLogger(__name__)

DEADLINE_MARGIN = timedelta(seconds=60)
"""Training ends this long before the limit, so that the end is told before the machine stops itself."""
DEADLINE_MARGIN_SHARE = 0.1
"""And no longer than this share of a short limit."""
WAIT_SECONDS = 0.5
RECORDED_PACKAGES = ("torch", "transformers", "peft", "accelerate", "safetensors")


def run_job(session: SessionFile, data: Path, *, agent: AgentClient, progress: Progress, stop: Stop) -> None:
    """Train and deliver the adapter. Raises `TrainerError`, or whatever a bug or a full disk raises."""
    rights = Rights(lambda: retried(agent.ask_grants, on=AgentUnavailableError, pause=stop.pause))
    spec = _agreed(session, rights.current())
    progress.event(EventType.STARTED, f"Trainer {__version__} on Python {platform.python_version()}.")
    watch = RunWatch(session, progress, stop)

    dataset = fetch_dataset(rights, spec.dataset, _scratch(data), pause=stop.pause)
    rows = read_rows(dataset, sample=spec.dataset.sample_rows, seed=spec.training.seed)
    watch.check()
    trained = _train(spec, rows, data, watch)
    archive = _pack(session, spec, trained, data)
    progress.event(EventType.PACKED, f"{archive.stat().st_size} bytes, verified.")

    # From here on nothing ends the run early: the work is done, and delivering it takes seconds.
    size = archive.stat().st_size
    delivery = Rights(
        lambda: retried(lambda: agent.ask_grants(size), on=AgentUnavailableError, pause=time.sleep)
    )
    deliver(archive, delivery, progress, stop=stop, until=session.deadline_at)


class Delivery(Protocol):
    """What a delivery tells, and hears of its verdict: `Progress`."""

    @property
    def uploads_wanted(self) -> int: ...
    def event(self, kind: EventType, message: str = "") -> None: ...


def deliver(
    archive: Path,
    rights: Rights,
    progress: Delivery,
    *,
    stop: Stop,
    until: datetime,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Upload, and again whenever an upload arrived damaged, until the attempt is over or its time is up.

    Meanwhile heartbeats go on: with them the control plane asks for another upload, or says that it is over.
    A wish to end never stops an upload that is due. Raises `TrainerError` (storage).
    """
    uploads = 0
    while uploads == 0 or not (stop.requested or datetime.now(UTC) >= until):
        if uploads >= progress.uploads_wanted:
            pause(WAIT_SECONDS)
            continue
        uploads += 1
        upload(archive, manifest_path(archive), rights, number=uploads, pause=pause)
        progress.event(EventType.UPLOADED, f"Upload {uploads}." if uploads > 1 else "")
        progress.event(EventType.COMPLETED)


class Listener(Protocol):
    """To whom a run is told: `Progress`."""

    def event(self, kind: EventType, message: str = "") -> None: ...

    def step(self, heartbeat: Heartbeat) -> None: ...


class RunWatch:
    """What ends a training early, and where its steps are told."""

    def __init__(self, session: SessionFile, progress: Listener, stop: Stop) -> None:
        left = session.deadline_at - datetime.now(UTC)
        self._latest = session.deadline_at - min(DEADLINE_MARGIN, left * DEADLINE_MARGIN_SHARE)
        self._progress = progress
        self._stop = stop

    def step(self, heartbeat: Heartbeat) -> None:
        self._progress.step(heartbeat)

    def check(self) -> None:
        """Raise `TrainerError` (interrupted, deadline) if the run should end."""
        self._stop.check()
        if datetime.now(UTC) >= self._latest:
            raise TrainerError(
                TrainerExit.DEADLINE,
                "The run's time limit was reached before the training ended."
                " Allow more time, or choose fewer steps or a faster GPU.",
            )

    def tell(self, kind: EventType, message: str) -> None:
        self._progress.event(kind, message)

    def warn(self, message: str) -> None:
        log.warning("%s", message)
        self.tell(EventType.WARNING, message)


def _agreed(session: SessionFile, grants: Grants) -> JobSpec:
    if (grants.spec.run_id, grants.attempt) != (session.run_id, session.attempt):
        raise TrainerError(
            TrainerExit.SPEC,
            f"The job is for run {grants.spec.run_id}, attempt {grants.attempt}, but this machine was"
            f" started for run {session.run_id}, attempt {session.attempt}.",
        )
    return grants.spec


def _scratch(data: Path) -> Path:
    """Where files lie that nobody needs afterwards; emptied first."""
    directory = data / "scratch"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def _train(spec: JobSpec, rows: Sequence[Row], data: Path, watch: RunWatch) -> Trained:
    """Masks, then trains. What is slow to import is imported here, when the first news has been sent."""
    from tensorant_trainer.base_model import load_tokenizer, quieten
    from tensorant_trainer.masking import make_samples
    from tensorant_trainer.training import train

    quieten()
    tokenizer = load_tokenizer(spec.base)
    samples = make_samples(rows, tokenizer, max_tokens=spec.training.max_tokens)
    _tell_dataset(len(rows), samples, watch)
    watch.check()
    trained = train(
        spec, samples.samples, pad_id=_pad_id(tokenizer), scratch=data / "scratch" / "trainer", watch=watch
    )
    first, last = trained.metrics.first_loss, trained.metrics.last_loss
    if first is not None and last is not None and last >= first:
        watch.warn(f"The loss did not fall: {first:.3f} at the first step, {last:.3f} at the end.")
    return trained


def _tell_dataset(rows: int, samples: Samples, watch: RunWatch) -> None:
    message = f"{rows} rows, {samples.tokens} tokens, {samples.learned} of them learned."
    log.info("Dataset: %s", message)
    watch.tell(EventType.DATASET, message)
    if samples.dropped:
        watch.warn(f"{samples.dropped} rows were left out: nothing to learn within the token limit.")


def _pad_id(tokenizer: Any) -> int:
    """Any token will do, since padding is masked by position."""
    return int(tokenizer.pad_token_id or tokenizer.eos_token_id or 0)


def _pack(session: SessionFile, spec: JobSpec, trained: Trained, data: Path) -> Path:
    """The verified archive. Raises `TrainerError` (self verify) if the verifier finds it unsound."""
    from tensorant_trainer.adapter import save_adapter

    directory = data / "scratch" / "adapter"
    names = save_adapter(trained.model, spec.base, directory)
    archive = data / spec.archive_path
    beside = pack(directory, names, _manifest(session, spec, trained), archive)
    expected = Expected(
        run_id=session.run_id, attempt=session.attempt, spec=spec, archive=beside.archive, every_hash=True
    )
    with FileArchive(archive) as written:
        report = verify(written, expected)
    if report.fault is not None:
        raise TrainerError(
            TrainerExit.SELF_VERIFY,
            f"The adapter is unsound ({report.fault.code}): {report.fault.message} {report.fault.mend}",
        )
    return archive


def _manifest(session: SessionFile, spec: JobSpec, trained: Trained) -> Manifest:
    limit = spec.training.max_steps
    return Manifest(
        run_id=session.run_id,
        attempt=session.attempt,
        status="complete",
        stop_reason="max_steps" if trained.steps_done == limit else "finished",
        steps_done=trained.steps_done,
        steps_total=trained.steps_total,
        base=spec.base,
        spec_sha256=spec.sha256(),
        dataset_sha256=spec.dataset.sha256,
        files={},
        metrics=trained.metrics,
        norms=trained.norms,
        base_modules=trained.base_modules,
        versions={"tensorant_trainer": __version__} | {name: version(name) for name in RECORDED_PACKAGES},
    )
