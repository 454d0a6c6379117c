"""The folder that is a simulated machine's whole PATH: stand-ins, and the few real tools the scripts need."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

import tensorant_local

REAL: Final = (
    *("bash", "sh", "env", "cat", "chmod", "cp", "cut", "date", "grep", "head", "id", "ls"),
    *("mkdir", "mv", "rm", "sed", "sleep", "sort", "sync", "tail", "touch", "tr"),
)

STAND_INS: Final = {
    "df": "df",
    "docker": "docker",
    "nvidia-smi": "nvidia_smi",
    "poweroff": "shutdown",
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
_PYTHON = """\
#!/bin/sh
exec '{python}' -S "$@"
"""
"""A host's own Python: none of this computer's packages."""


def install(folder: Path) -> None:
    """Fill `folder` anew. Raises FileNotFoundError if this computer lacks one of the real tools."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in REAL:
        (folder / name).symlink_to(_real(name))
    python = os.path.realpath(sys.executable)
    packages = Path(tensorant_local.__path__[0]).resolve().parent
    _write(folder / "python3", _PYTHON.format(python=python))
    for name, module in STAND_INS.items():
        _write(folder / name, _STAND_IN.format(packages=packages, python=python, module=module))


def _write(path: Path, script: str) -> None:
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)


def _real(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise FileNotFoundError(f"Simulated machines need {name} on this computer.")
    return path
