"""Who may do what: membership and role come from the store, never from the request."""

from __future__ import annotations

from tensorant.domain.errors import NotFound
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
