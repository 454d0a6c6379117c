"""Events of a provider: what they say is looked up at once, and the run's workflow is woken.

They are believed in nothing but that there is something to see: events may be lost, doubled and late.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from tensorant.domain.errors import DOUBTFUL, Conflict, ProviderError
from tensorant.domain.machines import Machine
from tensorant.domain.maintenance import ScheduledChange
from tensorant.ports import Clock, Computes, Store, Workflow
from tensorant.services.converge import converge_recorded
from tensorant.services.signals import signal


@dataclass(frozen=True)
class ProviderEvents:
    store: Store
    workflow: Workflow
    computes: Computes
    clock: Clock

    def instance_changed(self, account_id: str, region: str, instance_id: str) -> bool:
        """Wake the run whose machine this is, read the machine, and converge; False if it is nobody's.

        It is read here too, since a workflow may be busy, pausing, or over. Raises `DOUBTFUL` errors after
        the workflow was woken; the event comes again.
        """
        machine = self.store.machine_by_instance(account_id, region, instance_id)
        if machine is None:
            return False
        signal(machine.run_id, store=self.store, workflow=self.workflow)
        self._look(machine)
        return True

    def _look(self, machine: Machine) -> None:
        """A definite refusal is not raised: the event repeated would meet it again, and the sweep asks anyway."""
        try:
            converge_recorded(
                machine.run_id, machine.attempt, store=self.store, computes=self.computes, clock=self.clock
            )
        except DOUBTFUL:
            raise
        except ProviderError:
            return

    def change_scheduled(self, account_id: str, region: str, change: ScheduledChange) -> int:
        """Warn the runs whose machines are concerned, once for each change; how many machines are ours."""
        found = [
            self.store.machine_by_instance(account_id, region, instance_id)
            for instance_id in change.instance_ids
        ]
        concerned = [machine for machine in found if machine is not None and not machine.closed]
        for machine in concerned:
            with suppress(Conflict):  # it has been told
                self.store.commit(facts=[change.warning(machine, at=self.clock.now())])
        return len(concerned)
