"""An adapter is downloaded, verified on this computer and unpacked; an unsound one leaves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorant.contract import VerificationReport
from tensorant.verification import Expected, verify
from tests.support.archives import adapter_archive, archive_digest, job_spec, lora_tensors
from tests.support.command_line import (
    ORG,
    ScriptedApi,
    Terminal,
    adapter,
    problem,
    run,
    squeezed,
    status,
)
from tests.support.verdicts import BytesArchive

if TYPE_CHECKING:
    from pathlib import Path

SHOW = f"GET {ORG}/runs/run-1"
ADAPTER = f"GET {ORG}/runs/run-1/adapter"
DOWNLOAD = "GET /adapters/adapter.zip"


def verdict(data: bytes) -> VerificationReport:
    """The control plane's, of these bytes."""
    spec = job_spec()
    expected = Expected(run_id=spec.run_id, attempt=1, spec=spec, archive=archive_digest(data))
    return verify(BytesArchive(data), expected)


def offer(api: ScriptedApi, stored: bytes, *, verified: bytes | None = None) -> None:
    """A run whose archive is `stored`; the control plane has verified `verified`."""
    api.answer(SHOW, status("ended", outcome="succeeded", run=run(job_spec(), outcome="succeeded")))
    api.answer(ADAPTER, adapter(verdict(verified or stored)))
    api.answer(DOWNLOAD, stored)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_sound_adapter_is_unpacked_beside_its_archive(terminal: Terminal, api: ScriptedApi) -> None:
    data = adapter_archive()
    offer(api, data)

    result = terminal.run("runs", "adapter", "run-1")

    assert result.exit_code == 0
    directory = terminal.directory / "adapter-run-1"
    assert names(directory) == [
        "README.md",
        "adapter.zip",
        "adapter_config.json",
        "adapter_model.safetensors",
        "manifest.json",
    ]
    assert (directory / "adapter.zip").read_bytes() == data
    assert squeezed(result.stdout)[0] == "Verified: zip, manifest, config, header, tensors, hashes, values."
    assert "4 tensors" in result.stdout


def test_the_right_to_download_is_used_without_our_token_and_not_shown(
    terminal: Terminal, api: ScriptedApi
) -> None:
    offer(api, adapter_archive())

    result = terminal.run("runs", "adapter", "run-1")

    assert "Authorization" not in api.requests[-1].headers
    assert "c0ffee" not in result.output


def test_an_untrained_adapter_is_refused_and_not_kept(terminal: Terminal, api: ScriptedApi) -> None:
    offer(api, adapter_archive(tensors=lora_tensors(b=0.0)))

    result = terminal.run("runs", "adapter", "run-1", "--output", str(terminal.directory / "mine"))

    assert result.exit_code == 1
    assert "The downloaded archive is not the run's adapter" in result.stderr
    assert "UNTRAINED" in result.stderr
    assert names(terminal.directory / "mine") == []


def test_an_archive_that_was_swapped_in_storage_is_refused(terminal: Terminal, api: ScriptedApi) -> None:
    offer(api, adapter_archive(more={}, manifest={"metrics": {"last_loss": 1.0}}), verified=adapter_archive())

    result = terminal.run("runs", "adapter", "run-1")

    assert result.exit_code == 1
    assert "the object in the storage was changed after the run" in result.stderr
    assert names(terminal.directory / "adapter-run-1") == []


def test_a_refused_download_keeps_what_was_there(terminal: Terminal, api: ScriptedApi) -> None:
    offer(api, adapter_archive())
    assert terminal.run("runs", "adapter", "run-1").exit_code == 0
    before = names(terminal.directory / "adapter-run-1")
    api.answer(DOWNLOAD, b"<Error><Code>ExpiredToken</Code></Error>", status=403)
    terminal.run("runs", "adapter", "run-1")

    result = terminal.run("runs", "adapter", "run-1")

    assert result.exit_code == 1
    assert "answered 403 (ExpiredToken)" in result.stderr
    assert names(terminal.directory / "adapter-run-1") == before


def test_without_an_adapter_the_api_says_why(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, status("training"))
    none_yet = problem(
        field=None, message="The run run-1 has no verified adapter.", mend="Wait until the run has succeeded."
    )
    api.answer(ADAPTER, none_yet, status=409)

    result = terminal.run("runs", "adapter", "run-1")

    assert result.exit_code == 1
    assert "Mend: Wait until the run has succeeded." in result.stderr
    assert not (terminal.directory / "adapter-run-1").exists()
