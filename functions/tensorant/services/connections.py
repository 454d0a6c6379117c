"""Connections: saved by an owner, checked by a worker, read by members. A check never starts a machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tensorant.domain.connections import (
    AwsSettings,
    Catalog,
    CheckItem,
    CheckVerdict,
    Connection,
    ConnectionStatus,
    Settings,
)
from tensorant.domain.errors import DOUBTFUL, Conflict, NotFound, TensorantError
from tensorant.domain.identity import Actor
from tensorant.ports import Clock, ComputeCheck, Computes, Ids, ObjectStores, Secrets, Store, Workers
from tensorant.services.access import member_of
from tensorant.services.conflicts import until_settled


@dataclass(frozen=True)
class SavedConnections:
    """What an owner may do with connections; the only writer of their credentials."""

    store: Store
    secrets: Secrets
    workers: Workers
    clock: Clock
    ids: Ids

    def create(
        self, actor: Actor, organization_id: str, *, name: str, settings: Settings, secret: Mapping[str, str]
    ) -> Connection:
        """Store the credentials and the settings, and start the first check.

        The secret is written first: a connection without one could never be checked, a secret without
        a connection is read by nobody.
        """
        member_of(organization_id, actor, store=self.store).require_owner()
        connection = Connection(
            id=self.ids.new(f"conn-{settings.kind}"),
            organization_id=organization_id,
            name=name,
            settings=settings,
            status=ConnectionStatus.CHECKING,
            created_at=self.clock.now(),
            created_by=actor.subject,
        )
        self.secrets.write(connection.id, secret)
        self.store.commit(connection)
        self.workers.check_connection(organization_id, connection.id)
        return connection

    def replace_credentials(
        self, actor: Actor, organization_id: str, connection_id: str, *, secret: Mapping[str, str]
    ) -> Connection:
        """Store other credentials and check with them.

        Machines keep the account that made them on record: credentials of another account can neither
        release them nor make them count as gone.
        """
        member_of(organization_id, actor, store=self.store).require_owner()
        self.store.connection(organization_id, connection_id)
        self.secrets.write(connection_id, secret)
        return self.check_again(actor, organization_id, connection_id)

    def check_again(self, actor: Actor, organization_id: str, connection_id: str) -> Connection:
        """Start another check; read the connection to see its result."""
        member_of(organization_id, actor, store=self.store).require_owner()

        def mark() -> Connection:
            connection = self.store.connection(organization_id, connection_id).checking()
            self.store.commit(connection)
            return connection

        connection = until_settled(mark)
        self.workers.check_connection(organization_id, connection_id)
        return connection


@dataclass(frozen=True)
class ConnectionReader:
    """What any member may read of connections."""

    store: Store

    def show(self, actor: Actor, organization_id: str, connection_id: str) -> Connection:
        member_of(organization_id, actor, store=self.store)
        return self.store.connection(organization_id, connection_id)

    def list(self, actor: Actor, organization_id: str) -> Sequence[Connection]:
        member_of(organization_id, actor, store=self.store)
        return self.store.connections(organization_id)

    def catalog(self, actor: Actor, organization_id: str, connection_id: str) -> Catalog:
        """The GPU types of a compute connection, as its last check found them."""
        connection = self.show(actor, organization_id, connection_id)
        if not connection.kind.is_compute:
            raise NotFound("GPU catalog of connection", connection_id)
        catalog = self.store.catalog(connection_id)
        if catalog is None:
            raise Conflict(
                "catalog_missing",
                f"The connection {connection.name} has no GPU catalog yet.",
                mend="Wait for its check to end, and mend what the check reports.",
            )
        return catalog


@dataclass(frozen=True)
class ConnectionChecker:
    """The worker's side: opens the connection with its credentials and stores what it saw."""

    store: Store
    computes: Computes
    storages: ObjectStores
    clock: Clock

    def check(self, organization_id: str, connection_id: str) -> Connection:
        """Check and store. A failed check is a result, not an error."""
        connection = self.store.connection(organization_id, connection_id)
        seen = self._look(connection)

        def save() -> Connection:
            now = self.clock.now()
            checked = self.store.connection(organization_id, connection_id).checked(
                tuple(seen.items), at=now, account_id=seen.account_id, image=seen.image
            )
            if seen.types is None:
                self.store.commit(checked)
                return checked
            self.store.commit(checked, self._catalog(connection_id, seen))
            return checked

        return until_settled(save)

    def _look(self, connection: Connection) -> ComputeCheck:
        try:
            if isinstance(connection.settings, AwsSettings):
                return self.computes.open(connection).check(connection.settings)
            items = self.storages.open(connection).check()
            return ComputeCheck(items=items, account_id=None, image=None)
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
