"""Validating a dataset beside the least that anybody could do with it, and in how much memory."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

RUNS = 3
MEGABYTE = 1_000_000
SIZES = {"10 MB": 10 * MEGABYTE, "100 MB": 100 * MEGABYTE, "1 GB": 1000 * MEGABYTE}
FLOOR = "floor: json.loads of every line"
WAYS = {"floor": FLOOR, "validate": "validate: the worker's first pass", "copy": "copy: its second pass"}
COMPRESSED = "100 MB"
ADVICE = Path(__file__).parents[1] / "demo" / "dataset.jsonl"


@dataclass(frozen=True)
class Measured:
    seconds: float
    peak_bytes: int


def table() -> Table:
    found = Table(
        "file",
        "what",
        "seconds",
        "MB/s",
        "ratio to the floor",
        "peak memory",
        title=f"Datasets (best of {RUNS})",
    )
    with tempfile.TemporaryDirectory() as folder:
        for size, count in SIZES.items():
            path = Path(folder, "rows.jsonl")
            _make(path, count)
            floor = _compare(found, path, size, count)
            if size == COMPRESSED:
                for packed in (_gzipped(path), _zstd(path)):
                    once = best("validate", packed)
                    _add(found, f"{size} {packed.suffix}", WAYS["validate"], once, count, floor)
            found.add_section()
    return found


def _compare(found: Table, path: Path, size: str, count: int) -> Measured:
    """Turn by turn, so that a busy moment of the machine meets all of them."""
    turns = [{how: measured(how, path) for how in WAYS} for _ in range(RUNS)]
    fastest = {how: min((turn[how] for turn in turns), key=lambda each: each.seconds) for how in WAYS}
    for how, what in WAYS.items():
        _add(found, size, what, fastest[how], count, fastest["floor"])
    return fastest["floor"]


def _add(found: Table, file: str, what: str, once: Measured, count: int, floor: Measured) -> None:
    found.add_row(
        file,
        what,
        f"{once.seconds:.2f}",
        f"{count / MEGABYTE / once.seconds:.0f}",
        f"{once.seconds / floor.seconds:.2f}",
        f"{once.peak_bytes / MEGABYTE:.0f} MB",
    )


def best(how: str, path: Path) -> Measured:
    return min((measured(how, path) for _ in range(RUNS)), key=lambda each: each.seconds)


def measured(how: str, path: Path) -> Measured:
    command = [sys.executable, "-m", "bench._reading", how, str(path)]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return Measured(answer["seconds"], answer["peak"])


def _make(path: Path, size: int) -> None:
    """Chats of three messages from the demo dataset, about 600 bytes each, no two the same."""
    with path.open("wb") as file:
        written = 0
        for row in _rows():
            written += file.write(row)
            if written >= size:
                return


def _rows() -> Iterator[bytes]:
    lines = ADVICE.read_text(encoding="utf-8").splitlines()
    number = 0
    while True:
        for line in lines:
            number += 1
            yield f'{line.removesuffix(chr(34) + "}]}")} Case {number}."}}]}}\n'.encode()


def _gzipped(path: Path) -> Path:
    packed = path.with_name("rows.jsonl.gz")
    with path.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return packed


def _zstd(path: Path) -> Path:
    packed = path.with_name("rows.jsonl.zst")
    with path.open("rb") as source, zstd.open(packed, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return packed
