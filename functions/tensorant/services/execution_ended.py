"""Executions that ended badly: failed, timed out, or stopped in the console. The machine is not forgotten."""

from __future__ import annotations

from dataclasses import dataclass

from tensorant.ports import Clock, Computes, Store
from tensorant.services.conclusions import INTERRUPTED, fail, give_up
from tensorant.services.conflicts import until_settled
from tensorant.services.converge import converge


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
        if run.attempt:
            until_settled(lambda: self._converge(run_id, run.attempt))

    def _give_up(self, run_id: str) -> None:
        run = self.store.run(run_id)
        if not run.under_way:
            return
        machine = self.store.machine(run_id, run.attempt) if run.attempt else None
        if machine is None or machine.closed:
            fail(run, INTERRUPTED, store=self.store, clock=self.clock)
        else:
            give_up(run, machine, INTERRUPTED, store=self.store, clock=self.clock)

    def _converge(self, run_id: str, attempt: int) -> None:
        machine = self.store.machine(run_id, attempt)
        if machine.closed or machine.at_goal:
            return
        connection = self.store.connection(machine.organization_id, machine.connection_id)
        converge(machine, compute=self.computes.open(connection), store=self.store, clock=self.clock)
