"""Who may do what: membership and role come from the store, never from the request."""

from __future__ import annotations

from tensorant.domain.connections import Connection, ManagedBy
from tensorant.domain.errors import Forbidden, NotFound
from tensorant.domain.identity import Actor, Member
from tensorant.domain.runs import Run
from tensorant.ports import Store


def member_of(organization_id: str, actor: Actor, *, store: Store) -> Member:
    """The actor's membership. Raises `NotFound`: a stranger learns nothing of an organization."""
    member = store.member(organization_id, actor.subject)
    if member is None:
        raise NotFound("organization", organization_id)
    return member


def run_of(organization_id: str, run_id: str, actor: Actor, *, store: Store) -> Run:
    """A run of an organization that the actor belongs to. Raises `NotFound`."""
    member_of(organization_id, actor, store=store)
    run = store.run(run_id)
    if run.organization_id != organization_id:
        raise NotFound("run", run_id)
    return run


def connection_of(organization_id: str, connection_id: str, *, store: Store) -> Connection:
    """A connection as people see it: a removed one is not there. Raises `NotFound`."""
    connection = store.connection(organization_id, connection_id)
    if connection.removed:
        raise NotFound("connection", connection_id)
    return connection


def connection_seen_by(actor: Actor, organization_id: str, connection_id: str, *, store: Store) -> Connection:
    """A connection for its organization's members, and for platform admins where the platform keeps it.

    Raises `NotFound` for all others.
    """
    if not actor.platform_admin:
        member_of(organization_id, actor, store=store)
    connection = connection_of(organization_id, connection_id, store=store)
    if connection.managed_by is ManagedBy.ORGANIZATION:
        member_of(organization_id, actor, store=store)
    return connection


def connection_kept_by(actor: Actor, organization_id: str, connection_id: str, *, store: Store) -> Connection:
    """A connection that the actor may change: as an owner, or as a platform admin where the platform keeps it.

    Raises `NotFound` for strangers, `Forbidden` for those who may only use it.
    """
    connection = connection_seen_by(actor, organization_id, connection_id, store=store)
    if connection.managed_by is ManagedBy.ORGANIZATION:
        member_of(organization_id, actor, store=store).require_owner()
    elif not actor.platform_admin:
        raise Forbidden(
            "platform_managed",
            f"The connection {connection.name} is managed by the platform: members use it, its admins change it.",
            mend="Ask an administrator of this deployment, or make a connection of the organization's own.",
        )
    return connection
