"""Removing a connection: at once for people, and its credentials once nobody can need them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from tensorant.domain.connections import Connection
from tensorant.domain.identity import Actor
from tensorant.ports import Clock, Secrets, Store
from tensorant.services.access import connection_kept_by
from tensorant.services.conflicts import until_settled
from tensorant.services.connection_use import use_of

PURGE_GRACE = timedelta(minutes=15)
"""How long the credentials of a removed connection are kept: longer than any function that uses or writes them."""


@dataclass(frozen=True)
class RemovedConnections:
    """The person's side."""

    store: Store
    clock: Clock

    def remove(self, actor: Actor, organization_id: str, connection_id: str) -> Connection:
        """Mark it removed: nothing new is made with it. Raises `Conflict` while anything depends on it."""

        def mark() -> Connection:
            connection = connection_kept_by(actor, organization_id, connection_id, store=self.store)
            use_of(connection, store=self.store).require_none(connection, wanted="removed")
            removed = connection.remove(at=self.clock.now())
            self.store.commit(removed)
            return removed

        return until_settled(mark)


@dataclass(frozen=True)
class Purges:
    """The sweep's side."""

    store: Store
    secrets: Secrets
    clock: Clock

    def purge(self, connection: Connection) -> bool:
        """Delete the credentials of a removed connection; True if that was done now.

        They stay while a machine of it is not closed. Safe to repeat: deleting again is no error.
        """
        now = self.clock.now()
        if connection.removed_at is None or now < connection.removed_at + PURGE_GRACE:
            return False
        if use_of(connection, store=self.store).machines:
            return False
        self.secrets.delete(connection.id)

        def mark() -> None:
            present = self.store.connection(connection.organization_id, connection.id)
            self.store.commit(present.purged(at=now))

        until_settled(mark)
        return True
