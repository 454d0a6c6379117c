"""Executions that ended badly: failed, timed out, or stopped in the console. The machine is not forgotten."""

from __future__ import annotations

from dataclasses import dataclass

from tensorant.ports import Clock, Computes, Store
from tensorant.services.conclusions import INTERRUPTED, fail, give_up
from tensorant.services.conflicts import until_settled
from tensorant.services.converge import converge_recorded


@dataclass(frozen=True)
class ExecutionEnds:
    store: Store
    computes: Computes
    clock: Clock

    def ended(self, run_id: str) -> None:
        """Give up a run that nobody works on any more, keeping what there may be, and converge once.

        What is decided already stays. Raises provider errors; the event is delivered again, and the sweep
        comes after it.
        """
        until_settled(lambda: self._give_up(run_id))
        run = self.store.run(run_id)
        if run.attempt and not self.store.machine(run_id, run.attempt).at_goal:
            converge_recorded(run_id, run.attempt, store=self.store, computes=self.computes, clock=self.clock)

    def _give_up(self, run_id: str) -> None:
        run = self.store.run(run_id)
        if not run.under_way:
            return
        machine = self.store.machine(run_id, run.attempt) if run.attempt else None
        if machine is None or machine.closed:
            fail(run, INTERRUPTED, store=self.store, clock=self.clock)
        else:
            give_up(run, machine, INTERRUPTED, store=self.store, clock=self.clock)
