"""An archive is judged on this computer: 0 sound, 1 unsound, 2 it can't be told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.archives import adapter_archive, archive_digest, job_spec, lora_tensors, manifest_of
from tests.support.command_line import Terminal, squeezed

if TYPE_CHECKING:
    from pathlib import Path

NORMS = {
    "lora_a": 4.0,
    "lora_b": 2.0,
    "update": 1.5,
    "largest_update": 1.0,
    "largest_module": "model.layers.0.self_attn.q_proj",
    "largest_value": 0.5,
}


def written(directory: Path, name: str, content: bytes | dict[str, Any]) -> str:
    path = directory / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return str(path)


def test_a_sound_archive_proves_itself(terminal: Terminal, tmp_path: Path) -> None:
    data = adapter_archive(manifest={"norms": NORMS})

    result = terminal.run("adapter", "verify", written(tmp_path, "adapter.zip", data))

    assert result.exit_code == 0
    text = "\n".join(squeezed(result.stdout))
    assert "Sound: the archive holds a finished, trained adapter." in text
    assert "run-1, attempt 1, 46 of 46 steps" in text
    assert "LoRA, rank 4, 2 modules" in text
    assert "4 (F32), 128 parameters" in text
    assert f"SHA-256 {archive_digest(data).sha256}" in text
    assert (
        "update 1.5 (A 4, B 2), the most in model.layers.0.self_attn.q_proj (1); largest number 0.5" in text
    )


def test_an_unsound_archive_says_why_and_the_mend(terminal: Terminal, tmp_path: Path) -> None:
    data = adapter_archive(tensors=lora_tensors(b=0.0))

    result = terminal.run("adapter", "verify", written(tmp_path, "adapter.zip", data))

    assert result.exit_code == 1
    text = "\n".join(squeezed(result.stdout))
    assert "Unsound (UNTRAINED, training): None of the 2 adapted modules was trained: all are zero." in text
    assert "Mend: Train again" in text
    assert "Checks passed zip, manifest, config, header, tensors, hashes" in text


def test_a_warning_is_told(terminal: Terminal, tmp_path: Path) -> None:
    data = adapter_archive(job_spec(rank=64))

    result = terminal.run("adapter", "verify", written(tmp_path, "adapter.zip", data))

    assert result.exit_code == 0
    assert "Warning: Rank 64 is above vLLM's default of 16" in result.stderr


def test_json_is_the_report(terminal: Terminal, tmp_path: Path) -> None:
    data = adapter_archive()

    result = terminal.run("adapter", "verify", written(tmp_path, "adapter.zip", data), "--json")

    report = json.loads(result.stdout)
    assert (report["sound"], report["fault"], report["ranks"]) == (True, None, [4])
    assert report["archive"]["sha256"] == archive_digest(data).sha256


@pytest.mark.parametrize("around", [False, True])
def test_with_the_runs_job_the_config_must_be_what_was_asked_for(
    terminal: Terminal, tmp_path: Path, *, around: bool
) -> None:
    """The archive says rank 4 of itself, and is sound by itself; the run asked for rank 8."""
    archive = written(tmp_path, "adapter.zip", adapter_archive())
    spec = job_spec(rank=8).model_dump(mode="json")
    job = written(tmp_path, "run.json", {"run": {"id": "run-1", "spec": spec}} if around else spec)

    result = terminal.run("adapter", "verify", archive, "--run-spec", job, "--json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["fault"]["code"] == "MANIFEST_SPEC"


def test_with_the_runs_own_job_it_is_sound(terminal: Terminal, tmp_path: Path) -> None:
    archive = written(tmp_path, "adapter.zip", adapter_archive())
    job = written(tmp_path, "job.json", job_spec().model_dump(mode="json"))

    assert terminal.run("adapter", "verify", archive, "--run-spec", job).exit_code == 0


def test_the_object_beside_it_vouches_for_its_bytes(terminal: Terminal, tmp_path: Path) -> None:
    data, other = adapter_archive(), adapter_archive(tensors=lora_tensors(b=0.75))
    archive = written(tmp_path, "adapter.zip", data)

    def beside(content: bytes) -> str:
        digest = archive_digest(content).model_dump()
        return written(tmp_path, "adapter.manifest.json", manifest_of(job_spec(), {}, archive=digest))

    assert terminal.run("adapter", "verify", archive, "--manifest", beside(data)).exit_code == 0
    result = terminal.run("adapter", "verify", archive, "--manifest", beside(other), "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["fault"]["code"] == "HASH_ARCHIVE"


@pytest.mark.parametrize(
    ("job", "told"),
    [
        (b"{", "job.json is not JSON."),
        (b"[]", "job.json is not a JSON object."),
        (b"{}", "job.json is not a run's job: run_id is missing or wrong."),
    ],
)
def test_a_job_that_is_none_tells_nothing_of_the_archive(
    terminal: Terminal, tmp_path: Path, job: bytes, told: str
) -> None:
    archive = written(tmp_path, "adapter.zip", adapter_archive())

    result = terminal.run("adapter", "verify", archive, "--run-spec", written(tmp_path, "job.json", job))

    assert result.exit_code == 2
    assert told in result.stderr
    assert "Mend:" in result.stderr


def test_a_manifest_from_within_does_not_vouch_for_the_whole(terminal: Terminal, tmp_path: Path) -> None:
    archive = written(tmp_path, "adapter.zip", adapter_archive())
    inside = written(tmp_path, "manifest.json", manifest_of(job_spec(), {}))

    result = terminal.run("adapter", "verify", archive, "--manifest", inside)

    assert result.exit_code == 2
    assert "not manifest.json from within it" in result.stderr


def test_a_file_that_is_not_there_can_not_be_told(terminal: Terminal, tmp_path: Path) -> None:
    result = terminal.run("adapter", "verify", str(tmp_path / "none.zip"), "--json")

    assert result.exit_code == 2
    answer = json.loads(result.stdout)
    assert answer["sound"] is None
    assert answer["error"]["message"].endswith("none.zip can't be read: No such file or directory.")


def test_a_directory_can_not_be_told_either(terminal: Terminal, tmp_path: Path) -> None:
    assert terminal.run("adapter", "verify", str(tmp_path)).exit_code == 2
