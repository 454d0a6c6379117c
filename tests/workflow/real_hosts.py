"""Simulated machines that run the real boot scripts, for the runs that a test gives one."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from tensorant_local.machines.host import SimulatedMachines
from tensorant_local.machines.options import MachineOptions
from tests.workflow.hosts import PlayedHosts

SHORTER = {b"CONTACT_SECONDS=600": b"CONTACT_SECONDS=1", b"RETRY_SECONDS=5": b"RETRY_SECONDS=0.1"}
"""What user data says of pauses → what these machines are told, so that nobody waits for them."""


class RealHosts:
    """A `MachineHost` beside the played ones: boots an instance for real if its run is in `options`."""

    def __init__(self, folder: Path, beside: PlayedHosts) -> None:
        self.options: dict[str, MachineOptions] = {}
        self._machines = SimulatedMachines(folder, powered_itself_off=beside.powered_itself_off)
        self._one_at_a_time = Lock()

    def boot(self, instance_id: str, user_data: bytes, first: bool) -> None:  # noqa: FBT001 - see MachineHost
        options = next((each for run_id, each in self.options.items() if run_id.encode() in user_data), None)
        if options is None:
            return
        for usual, shorter in SHORTER.items():
            assert usual in user_data
            user_data = user_data.replace(usual, shorter)
        with self._one_at_a_time:
            self._machines.options = options
            self._machines.boot(instance_id, user_data, first)

    def power_off(self, instance_id: str) -> None:
        self._machines.power_off(instance_id)

    def destroy(self, instance_id: str) -> None:
        self._machines.destroy(instance_id)

    def close(self) -> None:
        self._machines.close()

    def console(self, instance_id: str) -> str:
        return self._machines.console(instance_id)

    def is_running(self, instance_id: str) -> bool:
        return self._machines.is_running(instance_id)
