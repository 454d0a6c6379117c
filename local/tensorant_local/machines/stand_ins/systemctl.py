"""`systemctl`: daemon-reload, start of a service from its unit file, is-active, poweroff."""

from __future__ import annotations

import configparser
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tensorant_local.machines.layout import Layout
from tensorant_local.machines.stand_ins.power import shut_down

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_KNOWN = {
    "Unit": {"Description", "Wants", "After"},
    "Service": {
        *("Type", "ExecStart", "StandardOutput", "StandardError", "TimeoutStopSec", "UMask"),
        *("StateDirectory", "StateDirectoryMode", "RuntimeDirectory", "RuntimeDirectoryMode"),
        *("CapabilityBoundingSet", "NoNewPrivileges", "PrivateTmp", "ProtectSystem", "ProtectHome"),
        *("ProtectKernelTunables", "ProtectKernelLogs", "ProtectControlGroups", "ProtectHostname"),
        *("RestrictAddressFamilies", "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID"),
        *("LockPersonality", "SystemCallArchitectures"),
    },
}
_DIRECTORIES = {"StateDirectory": "/var/lib", "RuntimeDirectory": "/run"}
_INACTIVE = 3


def main(arguments: Sequence[str]) -> None:
    machine = Layout.of_this_machine()
    match [argument for argument in arguments if argument not in ("--no-block", "--quiet")]:
        case ["daemon-reload"]:
            pass
        case ["poweroff"]:
            shut_down()
        case ["start", unit]:
            _start(machine, unit)
        case ["is-active", unit]:
            sys.exit(0 if _is_active(machine, unit) else _INACTIVE)
        case _:
            sys.exit(f"systemctl (stand-in): not understood: {arguments}")


def _start(machine: Layout, unit: str) -> None:
    """Nothing is done for a unit that runs already."""
    if _is_active(machine, unit):
        return
    service = _service(machine, unit)
    for key, parent in _DIRECTORIES.items():
        if key in service:
            directory = machine.inside(f"{parent}/{service[key]}")
            directory.mkdir(parents=True, exist_ok=True)
            directory.chmod(int(service.get(f"{key}Mode", "0755"), 8))
    command = [_translated(machine, word) for word in shlex.split(service["ExecStart"])]
    started = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    (machine.units / unit).write_text(str(started.pid), encoding="utf-8")


def _is_active(machine: Layout, unit: str) -> bool:
    try:
        os.kill(int((machine.units / unit).read_text(encoding="utf-8")), 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return True


def _service(machine: Layout, unit: str) -> Mapping[str, str]:
    path = machine.inside(f"/etc/systemd/system/{unit}")
    if not path.exists():
        sys.exit(f"Failed to start {unit}: Unit {unit} not found.")
    parser = _UnitFile()
    parser.read_string(path.read_text(encoding="utf-8"))
    for section in parser.sections():
        if unknown := set(parser[section]) - _KNOWN.get(section, set()):
            sys.exit(f"systemctl (stand-in): not understood in {unit}: {sorted(unknown)}")
    return parser["Service"]


class _UnitFile(configparser.RawConfigParser):
    """Keys keep their case, as systemd's do."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def _translated(machine: Layout, word: str) -> str:
    """An absolute path means the machine's own file, or else the tool of that name on its PATH."""
    if not word.startswith("/"):
        return word
    own = machine.inside(word)
    return str(own) if own.exists() else shutil.which(Path(word).name) or word


main(sys.argv[1:])
