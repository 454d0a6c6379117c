"""Events of a provider: they only wake the workflow, which then looks for itself."""

from __future__ import annotations

from dataclasses import dataclass

from tensorant.ports import Store, Workflow
from tensorant.services.signals import signal


@dataclass(frozen=True)
class ProviderEvents:
    store: Store
    workflow: Workflow

    def instance_changed(self, account_id: str, region: str, instance_id: str) -> bool:
        """Wake the run whose machine this is; False if it is nobody's."""
        machine = self.store.machine_by_instance(account_id, region, instance_id)
        if machine is None:
            return False
        signal(machine.run_id, store=self.store, workflow=self.workflow)
        return True
