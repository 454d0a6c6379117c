"""Where a simulated machine keeps its things. `root` is its disk; the rest is the machinery's own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tensorant_local.machines.options import MachineOptions

FOLDER_VARIABLE = "MACHINE_FOLDER"
INIT_VARIABLE = "MACHINE_INIT"
REGISTRY_VARIABLE = "MACHINE_REGISTRY"
"""Names the environment variables by which a stand-in finds its machine, the machine's first process, and the
port at which the outside answers."""


@dataclass(frozen=True)
class Layout:
    folder: Path

    @classmethod
    def of_this_machine(cls) -> Layout:
        """For the stand-ins, which run inside a machine."""
        return cls(Path(os.environ[FOLDER_VARIABLE]))

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def console(self) -> Path:
        return self.folder / "console.log"

    @property
    def user_data(self) -> Path:
        return self.folder / "user-data"

    @property
    def tools(self) -> Path:
        """The machine's own PATH, where it lacks a tool that the others have."""
        return self.folder / "bin"

    @property
    def images(self) -> Path:
        """One line for each image that was pulled; on the disk, so it outlives a restart."""
        return self.folder / "images"

    @property
    def units(self) -> Path:
        """What systemd has running: one file for each unit, with its process id."""
        return self.folder / "run" / "units"

    @property
    def trainer_process(self) -> Path:
        """The process id of the trainer's container; exists while it runs."""
        return self.folder / "run" / "trainer.pid"

    @property
    def booting(self) -> Path:
        """Exists while the system is not up yet."""
        return self.folder / "run" / "booting"

    @property
    def options_file(self) -> Path:
        return self.folder / "options.json"

    @property
    def options(self) -> MachineOptions:
        return MachineOptions.load(self.options_file)

    def inside(self, path: str) -> Path:
        """Where an absolute path of the machine lies."""
        return self.root / path.lstrip("/")
