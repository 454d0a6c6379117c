"""What a simulated machine is like, and what is wrong with it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True)
class MachineOptions:
    """A healthy single-GPU machine by default; every other value is a fault or a convenience."""

    architecture: str = "x86_64"
    gpu_name: str | None = "NVIDIA L4"
    """None: the driver sees no GPU."""
    driver_version: str | None = "580.126.09"
    """None: `nvidia-smi` can't reach a driver. The default is the one of the DLAMI of 2026-01-30."""
    gpus: int = 1
    gpu_in_container: bool = True
    missing_tools: tuple[str, ...] = ()
    """Commands that the image lacks, such as `docker`."""
    docker_answers: bool = True
    nvidia_runtime: bool = True
    pull_succeeds: bool = True
    disk_holds_image: bool = True
    """False: the disk is full before the image is unpacked."""
    container_starts: bool = True
    """False: the trainer's image has no such entry point."""
    free_disk_gib: int = 200
    route_out: bool = True
    """False: nothing outside the machine can be reached, by its containers neither."""
    unreachable: Mapping[str, str] = field(default_factory=dict)
    """Hosts, or host:port, that the machine itself can't reach → how: dns, refused, timeout, no_route or tls."""
    shutdown_grace_seconds: float = 2.0
    """How long processes have to end when the machine is shut down, before they are killed."""
    trainer_command: tuple[str, ...] = (sys.executable, "-m", "tensorant_trainer")
    """What `docker run` starts; the container's own arguments follow."""
    trainer_environment: Mapping[str, str] = field(default_factory=dict)
    """The image's environment."""

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> MachineOptions:
        return cls(**json.loads(path.read_text(encoding="utf-8")))
