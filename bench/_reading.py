"""One pass over a dataset in a process of its own, so that its peak memory is its own too."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tensorant.domain.datasets.judging import Content, judge, normal_form

CHUNK = 1 << 20
"""As the staging bucket is read."""


def chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def floor(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            json.loads(line)


def validate(path: Path) -> None:
    found = judge(chunks(path))
    if not isinstance(found, Content):
        raise SystemExit(f"The dataset has faults: {found[0]}")


def copy(path: Path) -> None:
    for _ in normal_form(chunks(path)):
        pass


WAYS: dict[str, Callable[[Path], None]] = {"floor": floor, "validate": validate, "copy": copy}

if __name__ == "__main__":
    began = time.perf_counter()
    WAYS[sys.argv[1]](Path(sys.argv[2]))
    took = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": took, "peak": peak}))
