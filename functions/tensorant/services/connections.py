"""Connections: saved by their keepers, read by members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tensorant.domain.connections import (
    AwsSettings,
    Catalog,
    Connection,
    ConnectionStatus,
    CredentialKind,
    ManagedBy,
    Settings,
)
from tensorant.domain.errors import Conflict, Forbidden, NotFound
from tensorant.domain.identity import Actor
from tensorant.ports import Clock, Ids, Secrets, Store, Workers
from tensorant.services.access import connection_kept_by, connection_seen_by, member_of
from tensorant.services.conflicts import until_settled


@dataclass(frozen=True)
class SavedConnections:
    """What a connection's keeper does first, and again: save it, check it."""

    store: Store
    secrets: Secrets
    workers: Workers
    clock: Clock
    ids: Ids

    def create(
        self,
        actor: Actor,
        organization_id: str,
        *,
        name: str,
        settings: Settings,
        secret: Mapping[str, str],
        expire_at: datetime | None = None,
        managed_by: ManagedBy = ManagedBy.ORGANIZATION,
    ) -> Connection:
        """Store the credentials and the settings, and start the first check. A role gets its external id here.

        The secret is written first: a connection without one could never be checked, a secret without
        a connection is read by nobody.
        """
        self._require_keeper(actor, organization_id, managed_by)
        _require_ours_for_the_platform_only(settings, managed_by)
        connection = Connection(
            id=self.ids.new(f"conn-{settings.kind}"),
            organization_id=organization_id,
            name=name,
            settings=self._with_external_id(settings),
            status=ConnectionStatus.CHECKING,
            created_at=self.clock.now(),
            created_by=actor.subject,
            managed_by=managed_by,
            credentials_expire_at=expire_at,
        )
        self.secrets.write(connection.id, secret)
        self.store.commit(connection)
        self.workers.check_connection(organization_id, connection.id)
        return connection

    def check_again(self, actor: Actor, organization_id: str, connection_id: str) -> Connection:
        """Start another check; read the connection to see its result."""

        def mark() -> Connection:
            kept = connection_kept_by(actor, organization_id, connection_id, store=self.store)
            connection = kept.checking()
            self.store.commit(connection)
            return connection

        connection = until_settled(mark)
        self.workers.check_connection(organization_id, connection_id)
        return connection

    def _require_keeper(self, actor: Actor, organization_id: str, managed_by: ManagedBy) -> None:
        if managed_by is ManagedBy.PLATFORM:
            actor.require_platform_admin()
            self.store.organization(organization_id)
        else:
            member_of(organization_id, actor, store=self.store).require_owner()

    def _with_external_id(self, settings: Settings) -> Settings:
        if not isinstance(settings, AwsSettings) or settings.credentials is not CredentialKind.ROLE:
            return settings
        return replace(settings, external_id=self.ids.external_id())


def _require_ours_for_the_platform_only(settings: Settings, managed_by: ManagedBy) -> None:
    """An owner could otherwise make machines at the deployment's own cost."""
    ours = isinstance(settings, AwsSettings) and settings.credentials is CredentialKind.SAME_ACCOUNT
    if ours and managed_by is not ManagedBy.PLATFORM:
        raise Forbidden(
            "same_account_by_platform_only",
            "Only a connection that the platform manages may use the deployment's own account.",
            mend="Use keys or a role; or let an administrator of this deployment make it, with managed_by platform.",
            field="credentials.kind",
        )


@dataclass(frozen=True)
class ConnectionReader:
    """What any member may read of connections, and platform admins of those that the platform keeps."""

    store: Store

    def show(self, actor: Actor, organization_id: str, connection_id: str) -> Connection:
        return connection_seen_by(actor, organization_id, connection_id, store=self.store)

    def list(self, actor: Actor, organization_id: str) -> Sequence[Connection]:
        member_of(organization_id, actor, store=self.store)
        return [each for each in self.store.connections(organization_id) if not each.removed]

    def catalog(self, actor: Actor, organization_id: str, connection_id: str) -> Catalog:
        """The GPU types of a compute connection, as its last check found them."""
        connection = self.show(actor, organization_id, connection_id)
        if not connection.kind.is_compute:
            raise NotFound("GPU catalog of connection", connection_id)
        catalog = self.store.catalog(connection_id)
        if catalog is None or catalog.empty:
            raise Conflict(
                "catalog_missing",
                f"The connection {connection.name} has no GPU catalog yet.",
                mend="Wait for its check to end, and mend what the check reports.",
            )
        return catalog
