"""A provider under test, whichever it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

from tensorant.domain.machines import Machine, Observation, Seen
from tensorant.ports import Compute

numbers = count(1)


@dataclass(frozen=True)
class Provider:
    """A provider under test, a machine that it can make, and how its time passes."""

    compute: Compute
    account_id: str
    template: Machine
    let_time_pass: Callable[[], object]

    def machine(self) -> Machine:
        """A record that nothing was asked for yet."""
        return replace(self.template, run_id=f"run-{next(numbers):016x}")

    def asked(self, wanted: Machine | None = None) -> Machine:
        wanted = wanted or self.machine()
        seen = self.compute.ask(wanted, user_data="#cloud-config\n")
        return replace(wanted, instance_id=seen.instance_id, seen=seen.state)

    def running(self) -> Machine:
        asked = self.asked()
        self.until(asked, Seen.RUNNING)
        return asked

    def until(self, of: Machine, state: Seen) -> Observation:
        deadline = time.monotonic() + 10
        while (seen := self.compute.observe(of)).state is not state:
            assert time.monotonic() < deadline, f"still {seen}"
            self.let_time_pass()
        return seen
