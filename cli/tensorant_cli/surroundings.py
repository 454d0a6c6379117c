"""What the command line touches of the outside; tests bring their own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Surroundings:
    """`transport` None: the network. `profile` and `url` are the options of the whole command line."""

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    home: Path = field(default_factory=Path.home)
    directory: Path = field(default_factory=Path.cwd)
    transport: httpx.BaseTransport | None = None
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = _now
    profile: str | None = None
    url: str | None = None

    @property
    def config_directory(self) -> Path:
        base = self.environ.get("XDG_CONFIG_HOME")
        return (Path(base) if base else self.home / ".config") / "tensorant"
