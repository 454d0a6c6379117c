"""One simulated machine that runs the real boot scripts, the agent API it talks to, and what its provider hears."""

from __future__ import annotations

import os
import queue
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tensorant.boot.render import BootParameters, user_data
from tensorant_local.machines.host import SimulatedMachines
from tensorant_local.machines.options import MachineOptions
from tests.support import stand_in_trainer
from tests.support.archives import job_spec
from tests.support.fake_agent import FakeAgent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tensorant.contract import Event

SOON = 30.0
"""Seconds to wait for what should happen at once, on a busy computer."""
ID = "i-0a1b2c3d4e5f60718"


def trainer(behaviour: str) -> MachineOptions:
    """A healthy machine whose image holds the trainer of tests, which ends as `behaviour` says."""
    return MachineOptions(
        trainer_command=(os.path.realpath(sys.executable), "-S", stand_in_trainer.__file__),
        trainer_environment={"STAND_IN_TRAINER": behaviour},
        shutdown_grace_seconds=0.5,
    )


@dataclass
class Room:
    machines: SimulatedMachines
    agent: FakeAgent
    heard: queue.Queue[str]

    def boot(self, options: MachineOptions, *, first: bool = True, **parameters: Any) -> None:
        self.machines.options = options
        self.machines.boot(ID, user_data(self.parameters(**parameters)).encode(), first)

    def parameters(self, **changed: Any) -> BootParameters:
        usual = BootParameters(
            agent_url=self.agent.url,
            token="one-time",
            run_id="run-1",
            attempt=1,
            deadline_seconds=300,
            recovery_window_seconds=300,
            release_wait_seconds=0,
            min_free_disk_gib=60,
            contact_seconds=2,
            retry_seconds=0.1,
        )
        return replace(usual, **changed)

    def turned_itself_off(self) -> bool:
        try:
            return self.heard.get(timeout=SOON) == ID
        except queue.Empty:
            return False

    @property
    def console(self) -> str:
        return self.machines.console(ID)

    @property
    def disk(self) -> Path:
        return self.machines.root(ID)

    def of_host(self) -> list[Event]:
        return [event for event in self.agent.events if event.source == "host"]


@contextmanager
def a_room(directory: Path) -> Iterator[Room]:
    heard: queue.Queue[str] = queue.Queue()
    with FakeAgent(job_spec()) as agent:
        machines = SimulatedMachines(directory, powered_itself_off=heard.put)
        try:
            yield Room(machines, agent, heard)
        finally:
            machines.close()
