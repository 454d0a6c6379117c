"""The verifier over loopback S3, beside SHA-256 over the same bytes and beside the usual way; and its memory."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from tensorant.contract import BaseModelRef, Manifest
from tensorant_trainer.archive import manifest_path, pack

RUNS = 5
MEGABYTE = 1_000_000
RANK, WIDTH = 64, 4096
BASE = BaseModelRef(repository="example/base", revision="0123456789abcdef")
WIDTHS = {"F32": 4, "BF16": 2}
SIZES = {"10 MB": 10 * MEGABYTE, "500 MB": 500 * MEGABYTE, "2 GB": 2000 * MEGABYTE}


@dataclass(frozen=True)
class Measured:
    seconds: float
    peak_bytes: int


def table() -> Table:
    found = Table(
        "archive",
        "what",
        "seconds",
        "ratio to the floor",
        "peak memory",
        title=f"Verifying a stored archive over loopback S3 (best of {RUNS})",
    )
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as url:
        for dtype in WIDTHS:
            _compare(found, url, Path(folder), dtype)
        found.add_section()
        for size, count in SIZES.items():
            archive = make(Path(folder), "F32", count)
            once = measured("verifier", url, archive)
            found.add_row(f"{size} F32", "verifier", f"{once.seconds:.2f}", "", _megabytes(once.peak_bytes))
            archive.unlink()
    return found


def _compare(found: Table, url: str, folder: Path, dtype: str) -> None:
    """Turn by turn, so that a busy moment of the machine meets all of them."""
    archive = make(folder, dtype, SIZES["500 MB"])
    ways = {"floor": "floor: SHA-256 over the same bytes", "verifier": "verifier", "usual": "the usual way"}
    if dtype == "BF16":
        del ways["usual"]  # numpy has no bfloat16: safetensors.numpy raises
    turns = [{how: measured(how, url, archive) for how in ways} for _ in range(RUNS)]
    best = {how: min((turn[how] for turn in turns), key=lambda each: each.seconds) for how in ways}
    for how, what in ways.items():
        once = best[how]
        ratio = once.seconds / best["floor"].seconds
        found.add_row(
            f"500 MB {dtype}", what, f"{once.seconds:.2f}", f"{ratio:.2f}", _megabytes(once.peak_bytes)
        )
    archive.unlink()


def measured(how: str, url: str, archive: Path) -> Measured:
    command = [sys.executable, "-m", "bench._verifying", how, url, archive.name, str(archive)]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return Measured(answer["seconds"], answer["peak"])


@contextmanager
def served(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "bench._objects", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


def make(folder: Path, dtype: str, size: int) -> Path:
    """A sound archive of about `size` bytes, packed by the trainer's own code, with its manifest beside it."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        config = {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": BASE.repository,
            "revision": BASE.revision,
            "r": RANK,
            "lora_alpha": 2 * RANK,
            "target_modules": ["q_proj"],
        }
        Path(scratch, "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
        _write_weights(Path(scratch, "adapter_model.safetensors"), dtype, size)
        archive = folder / f"{dtype}-{size}.zip"
        pack(Path(scratch), ["adapter_config.json", "adapter_model.safetensors"], _manifest(), archive)
        manifest_path(archive).replace(folder / f"{archive.name}.json")
    return archive


def _manifest() -> Manifest:
    return Manifest(
        run_id="run-1",
        attempt=1,
        status="complete",
        stop_reason="finished",
        steps_done=100,
        steps_total=100,
        base=BASE,
        spec_sha256="0" * 64,
        dataset_sha256="0" * 64,
        files={},
    )


def _write_weights(path: Path, dtype: str, size: int) -> None:
    """Matrices of numbers between 2^-13 and 2^-7 of either sign, as trained ones are; no two the same."""
    tensor_bytes = RANK * WIDTH * WIDTHS[dtype]
    layers = max(1, round(size / (2 * tensor_bytes)))
    header, at = {}, 0
    for layer in range(layers):
        for part, shape in (("A", [RANK, WIDTH]), ("B", [WIDTH, RANK])):
            name = f"base_model.model.model.layers.{layer}.self_attn.q_proj.lora_{part}.weight"
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + tensor_bytes]}
            at += tensor_bytes
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _ in range(2 * layers):
            file.write(_numbers(dtype, tensor_bytes))


def _numbers(dtype: str, count: int) -> bytes:
    width = WIDTHS[dtype]
    data = bytearray(os.urandom(count))
    data[width - 1 :: width] = data[width - 1 :: width].translate(
        bytes(0x39 + byte % 3 | (byte & 0x80) for byte in range(256))
    )
    return bytes(data)


def _megabytes(count: int) -> str:
    return f"{count / MEGABYTE:.0f} MB"
