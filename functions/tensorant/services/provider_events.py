"""Events of a provider: they wake the workflow, which then looks for itself; a kept machine is looked at here."""

from __future__ import annotations

from dataclasses import dataclass

from tensorant.domain.machines import Goal, Machine
from tensorant.ports import Clock, Computes, Store, Workflow
from tensorant.services.conflicts import until_settled
from tensorant.services.converge import converge
from tensorant.services.signals import signal


@dataclass(frozen=True)
class ProviderEvents:
    store: Store
    workflow: Workflow
    computes: Computes
    clock: Clock

    def instance_changed(self, account_id: str, region: str, instance_id: str) -> bool:
        """Wake the run whose machine this is; False if it is nobody's.

        A machine that is to be stopped or gone may have no workflow any more: it is read and converged here.
        """
        machine = self.store.machine_by_instance(account_id, region, instance_id)
        if machine is None:
            return False
        signal(machine.run_id, store=self.store, workflow=self.workflow)
        if machine.goal is not Goal.RUN:
            until_settled(lambda: self._converge(machine.run_id, machine.attempt))
        return True

    def _converge(self, run_id: str, attempt: int) -> Machine:
        machine = self.store.machine(run_id, attempt)
        if machine.closed:
            return machine
        connection = self.store.connection(machine.organization_id, machine.connection_id)
        return converge(machine, compute=self.computes.open(connection), store=self.store, clock=self.clock)
