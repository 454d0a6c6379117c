"""The trainer as a process, against an agent API and a storage on loopback, with a tiny random model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tensorant.contract import (
    BaseModelRef,
    DatasetRef,
    EventType,
    JobSpec,
    LoraSpec,
    Manifest,
    TrainerExit,
    TrainingSpec,
)
from tensorant.verification import Expected, FileArchive, verify
from tensorant_local.base_models import build_tiny, offline_environment
from tests.support.fake_agent import TOKEN, FakeAgent

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
START_SECONDS = 240
"""Enough to import torch on a very busy machine; it takes about 8 s on a quiet one."""
ROWS = [
    {
        "messages": [
            {"role": "user", "content": f"Which number follows {number}?"},
            {"role": "assistant", "content": f"The number {number + 1} follows."},
        ]
    }
    for number in range(40)
]
DATASET = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BaseModelRef]:
    cache = tmp_path_factory.mktemp("models")
    return cache, build_tiny(cache)


def job(base: BaseModelRef, *, max_steps: int | None = None, epochs: float = 4.0) -> JobSpec:
    return JobSpec(
        run_id="run-1",
        base=base,
        lora=LoraSpec(rank=8, alpha=16),
        training=TrainingSpec(epochs=epochs, max_steps=max_steps, learning_rate=0.01, max_tokens=256),
        dataset=DatasetRef(sha256=sha256(DATASET).hexdigest(), rows=len(ROWS), bytes=len(DATASET)),
    )


@dataclass
class Machine:
    """What a host gives its container: a session file, a data directory, an environment."""

    directory: Path
    agent: FakeAgent
    cache: Path

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @contextmanager
    def trainer(self, *, hash_seed: str = "0") -> Iterator[subprocess.Popen[bytes]]:
        """The trainer's process; killed if the test leaves it running."""
        self.data.mkdir()
        session = self.directory / "session.json"
        session.write_text(json.dumps(self._session()))
        command = [sys.executable, "-m", "tensorant_trainer", "train"]
        options = ["--session", str(session), "--data", str(self.data)]
        with (self.directory / "output").open("wb") as output:
            process = subprocess.Popen(
                [*command, *options], env=self._environment(hash_seed), stdout=output, stderr=output
            )
            try:
                yield process
            finally:
                process.kill()
                process.wait()

    def run(self, *, hash_seed: str = "0") -> int:
        with self.trainer(hash_seed=hash_seed) as process:
            return process.wait(START_SECONDS)

    def output(self) -> str:
        return (self.directory / "output").read_text()

    def _session(self) -> dict[str, object]:
        return {
            "url": self.agent.url,
            "session_token": TOKEN,
            "heartbeat_seconds": 1,
            "deadline_at": (datetime.now(UTC) + timedelta(hours=1)).isoformat(),
            "run_id": "run-1",
            "attempt": 1,
        }

    def _environment(self, hash_seed: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("functions", "trainer")),
            "PYTHONHASHSEED": hash_seed,
            "HOME": str(self.directory),
            "OMP_NUM_THREADS": "1",
            **offline_environment(self.cache),
        }


@contextmanager
def machine(
    directory: Path, models: tuple[Path, BaseModelRef], spec: JobSpec | None = None
) -> Iterator[Machine]:
    cache, base = models
    with FakeAgent(spec or job(base), DATASET) as agent:
        agent.releases = True
        yield Machine(directory, agent, cache)


@pytest.fixture(scope="module")
def finished(
    tmp_path_factory: pytest.TempPathFactory, models: tuple[Path, BaseModelRef]
) -> Iterator[Machine]:
    with machine(tmp_path_factory.mktemp("finished"), models) as one:
        assert one.run() == 0, one.output()
        yield one


def test_a_good_run_tells_its_story_in_order(finished: Machine) -> None:
    events = finished.agent.events

    assert [event.seq for event in events] == list(range(len(events)))
    without_steps = [event.type for event in events if event.type is not EventType.STEP]
    assert without_steps == [
        EventType.STARTED,
        EventType.DATASET,
        EventType.PACKED,
        EventType.UPLOADED,
        EventType.COMPLETED,
    ]
    steps = [event.step for event in events if event.type is EventType.STEP]
    assert (steps[0], steps[-1]) == (1, 20)  # 40 rows, 8 at a time, four times
    assert finished.agent.heartbeats


def test_the_loss_falls(finished: Machine) -> None:
    metrics = Manifest.model_validate_json(finished.agent.objects["adapter.manifest.json"]).metrics

    assert metrics.first_loss is not None
    assert metrics.last_loss is not None
    assert metrics.last_loss < metrics.first_loss - 0.3


def test_the_uploaded_archive_is_sound_and_the_same_as_on_the_disk(finished: Machine) -> None:
    archive = finished.data / "adapter.zip"
    manifest = Manifest.model_validate_json(finished.agent.objects["adapter.manifest.json"])

    assert finished.agent.puts == ["adapter.zip", "adapter.manifest.json"]
    assert finished.agent.objects["adapter.zip"] == archive.read_bytes()
    expected = Expected(
        run_id="run-1", attempt=1, spec=finished.agent.grants().spec, archive=manifest.archive
    )
    with FileArchive(archive) as uploaded:
        report = verify(uploaded, expected)
    assert report.fault is None
    assert report.sound
    assert manifest.steps_done == manifest.steps_total == 20
    assert manifest.stop_reason == "finished"


def test_the_adapter_names_its_base_model_as_the_run_does(finished: Machine) -> None:
    with zipfile.ZipFile(finished.data / "adapter.zip") as archive:
        config = json.loads(archive.read("adapter_config.json"))

    base = finished.agent.grants().spec.base
    assert (config["base_model_name_or_path"], config["revision"]) == (base.repository, base.revision)
    assert config["target_modules"] == sorted(config["target_modules"])


def test_the_log_is_shipped_without_secrets_or_noise(finished: Machine) -> None:
    text = "\n".join(finished.agent.log) + finished.output()

    assert "Step 20 of 20" in text
    assert TOKEN not in text
    assert "X-Amz-Signature" not in text
    assert "WARNING" not in text


def test_another_process_makes_the_same_adapter(
    finished: Machine, models: tuple[Path, BaseModelRef], tmp_path: Path
) -> None:
    with machine(tmp_path, models) as one:
        assert one.run(hash_seed="7") == 0, one.output()

    first, second = (
        Manifest.model_validate_json(agent.objects["adapter.manifest.json"])
        for agent in (finished.agent, one.agent)
    )
    assert first.files == second.files


def test_the_manifest_has_norms_and_the_base_models_layers(finished: Machine) -> None:
    manifest = Manifest.model_validate_json(finished.agent.objects["adapter.manifest.json"])

    assert manifest.base_modules is not None
    # two layers of q, k, v, o, gate, up and down, and the output, which is tied to the embedding
    assert len(manifest.base_modules.linear) == 2 * 7 + 1
    assert manifest.base_modules.linear["model.layers.1.self_attn.k_proj"] == [32, 64]
    assert manifest.base_modules.embeddings == {"model.embed_tokens": [258, 64]}
    assert manifest.base_modules.output == "lm_head"
    assert manifest.norms is not None
    assert manifest.norms.largest_module in manifest.base_modules.linear
    assert 0 < manifest.norms.largest_update <= manifest.norms.update
    assert 0 < manifest.norms.largest_value < 10
    assert manifest.upload == 1


def test_an_upload_that_arrived_damaged_is_repeated(
    models: tuple[Path, BaseModelRef], tmp_path: Path
) -> None:
    with machine(tmp_path, models, job(models[1], max_steps=2)) as one:
        one.agent.uploads_wanted = 3
        assert one.run() == 0, one.output()

    manifest = Manifest.model_validate_json(one.agent.objects["adapter.manifest.json"])
    assert one.agent.puts == ["adapter.zip", "adapter.manifest.json"] * 3
    assert manifest.upload == 3
    assert manifest.archive is not None
    assert manifest.archive.sha256 == sha256(one.agent.objects["adapter.zip"]).hexdigest()
    assert one.agent.types().count(EventType.UPLOADED) == 3


def test_another_dataset_than_agreed_ends_with_its_code(
    models: tuple[Path, BaseModelRef], tmp_path: Path
) -> None:
    with machine(tmp_path, models) as one:
        one.agent.dataset = DATASET.replace(b"follows", b"trails ")
        assert one.run() == 11

    assert one.agent.types() == [EventType.STARTED, EventType.FAILED]
    failure = one.agent.events[-1]
    assert (failure.code, failure.exit_code) == (TrainerExit.DATASET, 11)
    assert "not the version this run was made for" in failure.message
    assert one.agent.puts == []


def test_a_terminated_training_says_so_and_leaves_no_archive(
    models: tuple[Path, BaseModelRef], tmp_path: Path
) -> None:
    with (
        machine(tmp_path, models, job(models[1], epochs=100.0)) as one,
        one.trainer() as process,
    ):
        assert one.agent.wait_for(EventType.STEP, START_SECONDS)
        process.send_signal(signal.SIGTERM)
        assert process.wait(START_SECONDS) == 75

    failure = one.agent.events[-1]
    assert (failure.type, failure.code) == (EventType.FAILED, TrainerExit.INTERRUPTED)
    assert not (one.data / "adapter.zip").exists()
    assert one.agent.puts == []
