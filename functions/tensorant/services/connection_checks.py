"""Checking a connection, with its credentials. A check never starts a machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tensorant.domain.connections import AwsSettings, Catalog, CheckItem, CheckVerdict, Connection
from tensorant.domain.errors import DOUBTFUL, TensorantError
from tensorant.ports import Clock, ComputeCheck, Computes, ObjectStores, StorageCheck, Store
from tensorant.services.conflicts import until_settled


@dataclass(frozen=True)
class ConnectionChecker:
    """The worker's side: opens the connection with its credentials and stores what it saw."""

    store: Store
    computes: Computes
    storages: ObjectStores
    clock: Clock

    def check(self, organization_id: str, connection_id: str) -> Connection:
        """Check and store. A failed check is a result, not an error.

        One that got no answer is stored as unfinished and raised: the worker is called again a few times.

        What was seen of a connection that has been changed or removed meanwhile proves nothing, and is
        dropped: each change starts a check of its own.
        """
        connection = self.store.connection(organization_id, connection_id)
        if connection.removed:
            return connection
        try:
            seen = self._look(connection)
        except DOUBTFUL as error:
            until_settled(partial(self._keep_unfinished, connection, error.message))
            raise

        def save() -> Connection:
            present = self.store.connection(organization_id, connection_id)
            if present.removed or present.generation != connection.generation:
                return present
            now = self.clock.now()
            expiry = present.expiry_item(now)
            items = (*seen.items, *([expiry] if expiry else []))
            if isinstance(seen, StorageCheck):
                checked = present.checked(items, at=now, abilities=seen.abilities)
                self.store.commit(checked)
                return checked
            checked = present.checked(
                items,
                at=now,
                account_id=seen.account_id,
                image=seen.image,
                subnet_zones=seen.subnet_zones,
            )
            catalog = [] if seen.types is None else [self._catalog(connection_id, seen)]
            self.store.commit(checked, *catalog)
            return checked

        return until_settled(save)

    def _keep_unfinished(self, connection: Connection, trouble: str) -> None:
        present = self.store.connection(connection.organization_id, connection.id)
        if not present.removed and present.generation == connection.generation:
            self.store.commit(present.check_unfinished(trouble, at=self.clock.now()))

    def _look(self, connection: Connection) -> ComputeCheck | StorageCheck:
        try:
            if isinstance(connection.settings, AwsSettings):
                return self.computes.open(connection).check(connection.settings)
            return self.storages.open(connection).check()
        except DOUBTFUL:
            raise
        except TensorantError as error:
            failed = CheckItem(
                name="connection", verdict=CheckVerdict.FAILED, seen=error.message, mend=error.mend
            )
            return ComputeCheck(items=(failed,), account_id=None, image=None)

    def _catalog(self, connection_id: str, seen: ComputeCheck) -> Catalog:
        present = self.store.catalog(connection_id)
        return Catalog(
            connection_id=connection_id,
            types=seen.types or (),
            excluded=dict(seen.excluded),
            disk_usd_per_gib_month=seen.disk_usd_per_gib_month,
            priced_at=self.clock.now(),
            version=present.version if present else 0,
        )
