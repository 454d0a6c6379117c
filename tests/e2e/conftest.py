"""Local mode as a person meets it: the command line on one side, real machines' scripts on the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tensorant_local.cloud import PROJECT
from tensorant_local.deployment import LocalDeployment

COMMAND_SECONDS = 300
"""The longest that one command may take; the whole path takes less than a minute on a quiet machine."""


@dataclass(frozen=True)
class Person:
    """Somebody at a terminal, in a folder where local mode runs, with an empty home."""

    deployment: LocalDeployment
    folder: Path

    def types(self, *arguments: str, answer: str = "") -> str:
        """What a command prints, which must succeed."""
        done = self.tries(*arguments, answer=answer)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def reads(self, *arguments: str) -> Any:
        return json.loads(self.types(*arguments, "--json"))

    def tries(self, *arguments: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).with_name("tensorant")), *arguments],
            cwd=self.folder,
            env={
                "HOME": str(self.folder / "home"),
                "PATH": os.environ["PATH"],
                "NO_COLOR": "1",
                "COLUMNS": "200",
            },
            input=answer,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )


@pytest.fixture(scope="package")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    folder = tmp_path_factory.mktemp("terminal")
    state = folder / ".tensorant"
    state.mkdir()
    cache = PROJECT / ".tensorant" / "synth"
    cache.mkdir(parents=True, exist_ok=True)
    (state / "synth").symlink_to(cache)
    (folder / "home").mkdir()
    with LocalDeployment(state=state) as deployment:
        deployment.model("tiny")
        deployment.write_profile()
        someone = Person(deployment, folder)
        someone.types("organizations", "create", "Acme")
        someone.types("connections", "create", "aws")
        someone.types("connections", "create", "s3")
        someone.types("projects", "create", "explain-errors")
        someone.types("datasets", "upload", str(PROJECT / "demo" / "dataset.jsonl"))
        yield someone


def until(done: Callable[[], bool], *, seconds: float = 120) -> None:
    give_up_at = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < give_up_at, "it took too long"
        time.sleep(0.2)
