"""The computer room: boots, shuts down and destroys simulated machines, one process group each."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import TYPE_CHECKING

from tensorant_local.machines import init, tools
from tensorant_local.machines.layout import REGISTRY_VARIABLE, Layout
from tensorant_local.machines.options import MachineOptions
from tensorant_local.machines.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_DEAD_END = "http://127.0.0.1:9"
"""A proxy nobody listens at (the discard port): what a machine without a route out is given."""
_SHUTDOWN_MARGIN_SECONDS = 10

_log = logging.getLogger(__name__)


@dataclass
class _Machine:
    instance_id: str
    process: subprocess.Popen[bytes]
    ordered_off: bool = False
    watcher: Thread = field(init=False)


class SimulatedMachines:
    """What EC2 has behind its API. `options` hold for machines that boot from now on.

    `powered_itself_off` is called from a thread of its own, once for each machine that shut itself down
    without being told to by this class.
    """

    def __init__(
        self,
        directory: Path,
        *,
        powered_itself_off: Callable[[str], None] = lambda _: None,
        options: MachineOptions | None = None,
    ) -> None:
        self.powered_itself_off = powered_itself_off
        self.options = options or MachineOptions()
        self._directory = directory.resolve()
        self._tools = self._directory / "bin"
        self._running: dict[str, _Machine] = {}
        self._lock = Lock()
        tools.install(self._tools)
        self._registry = Registry(self._directory / "registry")
        self._registry.start("registry of images")

    def boot(self, instance_id: str, user_data: bytes, first: bool) -> None:  # noqa: FBT001 - the protocol of the EC2 stand-in
        """Start a machine; `first` only at its very first boot. Raises RuntimeError if it runs already."""
        layout = self._layout(instance_id)
        with self._lock:
            if instance_id in self._running:
                raise RuntimeError(f"{instance_id} is running.")
            _prepare(layout)
            layout.user_data.write_bytes(user_data)
            self.options.save(layout.options_file)
            machine = _Machine(instance_id, self._start(layout, first=first))
            machine.watcher = Thread(
                target=self._watch, args=[machine], name=f"machine {instance_id}", daemon=True
            )
            self._running[instance_id] = machine
        machine.watcher.start()

    def power_off(self, instance_id: str) -> None:
        """Shut down and wait until nothing of the machine runs; its disk stays. Harmless if it is off."""
        if machine := self._order_off(instance_id):
            machine.process.send_signal(signal.SIGTERM)
            machine.watcher.join(self.options.shutdown_grace_seconds + _SHUTDOWN_MARGIN_SECONDS)
            self._cut_power(machine)

    def destroy(self, instance_id: str) -> None:
        """End the machine at once, and remove its disk. Harmless if it is gone."""
        if machine := self._order_off(instance_id):
            self._cut_power(machine)
        _erase(self._layout(instance_id))

    def close(self) -> None:
        """Cut every machine's power; disks stay."""
        for instance_id in list(self._running):
            if machine := self._order_off(instance_id):
                self._cut_power(machine)
        self._registry.stop()

    def is_running(self, instance_id: str) -> bool:
        return instance_id in self._running

    def root(self, instance_id: str) -> Path:
        """The machine's disk, as a folder of this computer."""
        return self._layout(instance_id).root

    def console(self, instance_id: str) -> str:
        """All that the machine's boots have printed; readable after it was destroyed."""
        return self._layout(instance_id).console.read_text(encoding="utf-8", errors="replace")

    def kill_trainer(self, instance_id: str) -> None:
        """End the trainer's process as a kernel out of memory does. Raises LookupError if none runs."""
        try:
            process_id = int(self._layout(instance_id).trainer_process.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise LookupError(f"No trainer runs on {instance_id}.") from error
        os.kill(process_id, signal.SIGKILL)

    def _start(self, layout: Layout, *, first: bool) -> subprocess.Popen[bytes]:
        with layout.console.open("ab") as console:
            return subprocess.Popen(
                [sys.executable, "-m", init.__name__, str(layout.folder), "first" if first else "again"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=console,
                env=self._environment(layout),
                start_new_session=True,
            )

    def _environment(self, layout: Layout) -> dict[str, str]:
        """Everything a machine's processes know of the outside."""
        environment = {
            "ROOT": str(layout.root),
            "PATH": str(self._path(layout)),
            "TMPDIR": str(layout.folder / "tmp"),
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "SSL_CERT_FILE": str(self._registry.trusted),
            REGISTRY_VARIABLE: str(self._registry.server_port),
        }
        if not self.options.route_out:
            environment |= {"http_proxy": _DEAD_END, "https_proxy": _DEAD_END}
        return environment

    def _path(self, layout: Layout) -> Path:
        if not self.options.missing_tools:
            return self._tools
        tools.install(layout.tools, without=self.options.missing_tools)
        return layout.tools

    def _order_off(self, instance_id: str) -> _Machine | None:
        with self._lock:
            machine = self._running.get(instance_id)
            if machine:
                machine.ordered_off = True
            return machine

    def _cut_power(self, machine: _Machine) -> None:
        if machine.process.stdin and not machine.process.stdin.closed:
            machine.process.stdin.close()
        machine.watcher.join()

    def _watch(self, machine: _Machine) -> None:
        """Wait for the machine's end, whoever brings it about."""
        with machine.process as process:
            said = process.stdout.read() if process.stdout else b""
        with self._lock:
            del self._running[machine.instance_id]
        if said != init.OFF:
            _log.warning(
                "The first process of %s has died with status %s.", machine.instance_id, process.returncode
            )
        elif not machine.ordered_off:
            self.powered_itself_off(machine.instance_id)

    def _layout(self, instance_id: str) -> Layout:
        return Layout(self._directory / instance_id)


def _prepare(layout: Layout) -> None:
    """Make the folders, and empty what does not outlive a boot."""
    layout.folder.mkdir(parents=True, exist_ok=True)
    (layout.folder / "tmp").mkdir(exist_ok=True)
    for volatile in (layout.root / "run", layout.folder / "run"):
        shutil.rmtree(volatile, ignore_errors=True)
        volatile.mkdir(parents=True)
    layout.units.mkdir()
    layout.booting.touch()


def _erase(layout: Layout) -> None:
    """Everything goes but the console's log, which a provider keeps readable for a while too."""
    for item in layout.folder.iterdir() if layout.folder.exists() else ():
        if item.is_dir():
            shutil.rmtree(item)
        elif item != layout.console:
            item.unlink()
