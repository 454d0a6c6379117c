"""`systemd-run` for timers that run a command once, some seconds after the boot.

As on a real machine, a timer with default dependencies waits for the system to be up; asked for during
the boot, it would wait for the boot that waits for it. Here that is refused instead.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from tensorant_local.machines.layout import Layout

_NO_DEFAULTS = "DefaultDependencies=no"


def main() -> None:
    machine = Layout.of_this_machine()
    asked = _parser().parse_args()
    if machine.booting.exists() and not _fit_for_early_boot(asked):
        sys.exit(
            f"systemd-run (stand-in): during boot this needs --no-block, and {_NO_DEFAULTS} on timer and service."
        )
    record = machine.units / f"{asked.unit}.timer"
    if record.exists():
        sys.exit(f"Failed to start transient timer unit: Unit {record.name} was already loaded.")
    waiting = subprocess.Popen(
        [
            "sh",
            "-c",
            'sleep "$1"; shift; exec "$@"',
            asked.unit,
            asked.on_boot.removesuffix("s"),
            *asked.command,
        ],
        stdin=subprocess.DEVNULL,
    )
    record.write_text(str(waiting.pid), encoding="utf-8")
    print(f"Running timer as unit: {record.name}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="systemd-run (stand-in)", allow_abbrev=False)
    parser.add_argument("--no-block", action="store_true")
    parser.add_argument("--unit", required=True)
    parser.add_argument("--on-boot", required=True)
    parser.add_argument("--timer-property", action="append", default=[])
    parser.add_argument("--property", action="append", default=[])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser


def _fit_for_early_boot(asked: argparse.Namespace) -> bool:
    return asked.no_block and _NO_DEFAULTS in asked.timer_property and _NO_DEFAULTS in asked.property


main()
