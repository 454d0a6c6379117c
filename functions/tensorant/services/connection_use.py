"""Finds what depends on a connection."""

from __future__ import annotations

from tensorant.domain.connection_use import Use
from tensorant.domain.connections import Connection
from tensorant.ports import Store


def use_of(connection: Connection, *, store: Store) -> Use:
    """What depends on the connection at this moment.

    Machines and runs come from listings, which may lag a little. A run is listed from its launch, long before
    its first machine can be asked for, and an ask is conditioned on the connection's version: so whoever reads
    the connection, then this, and then writes the connection, can't overlook a machine. Runs are read first: one
    that ends in between has left its machine, if any, to the listing that comes after.
    """
    runs = [
        each
        for each in store.runs_under_way()
        if connection.id in {each.draft.connection_id, each.storage_connection_id}
    ]
    machines = [each for each in store.open_machines() if each.connection_id == connection.id]
    projects = [
        each
        for each in store.projects(connection.organization_id)
        if each.storage_connection_id == connection.id
    ]
    return Use(machines=tuple(machines), runs=tuple(runs), projects=tuple(projects))
