"""The folder that is a simulated machine's whole PATH: stand-ins, and the few real tools the scripts need."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import tensorant_local

if TYPE_CHECKING:
    from collections.abc import Sequence

REAL: Final = (
    *("bash", "sh", "env", "cat", "chmod", "cp", "cut", "date", "grep", "head", "id", "ls"),
    *("mkdir", "mv", "rm", "sed", "sleep", "sort", "sync", "tail", "timeout", "touch", "tr", "wc"),
)

STAND_INS: Final = {
    "df": "df",
    "docker": "docker",
    "nvidia-smi": "nvidia_smi",
    "poweroff": "shutdown",
    "python3": "python3",
    "shutdown": "shutdown",
    "systemctl": "systemctl",
    "systemd-run": "systemd_run",
    "uname": "uname",
}
"""Command → module of `stand_ins`."""

_STAND_IN = """\
#!/bin/sh
PYTHONPATH='{packages}' exec '{python}' -S -c 'import tensorant_local.machines.stand_ins.{module}' "$@"
"""


def install(folder: Path, *, without: Sequence[str] = ()) -> None:
    """Fill `folder` anew. Raises FileNotFoundError if this computer lacks one of the real tools."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in REAL:
        (folder / name).symlink_to(_real(name))
    python = os.path.realpath(sys.executable)
    packages = Path(tensorant_local.__path__[0]).resolve().parent
    for name, module in STAND_INS.items():
        _write(folder / name, _STAND_IN.format(packages=packages, python=python, module=module))
    for name in without:
        (folder / name).unlink()


def _write(path: Path, script: str) -> None:
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)


def _real(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise FileNotFoundError(f"Simulated machines need {name} on this computer.")
    return path
