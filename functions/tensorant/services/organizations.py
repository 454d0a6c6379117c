"""Organizations and their first owner, made by a platform admin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorant.domain.identity import Actor, Member, Organization, Role
from tensorant.ports import Clock, Ids, Store


@dataclass(frozen=True)
class Organizations:
    store: Store
    clock: Clock
    ids: Ids

    def create(self, actor: Actor, *, name: str, owner: str) -> Organization:
        """Make an organization whose owner is the person with that token subject."""
        actor.require_platform_admin()
        now = self.clock.now()
        organization = Organization(id=self.ids.new("org"), name=name, created_at=now)
        member = Member(organization_id=organization.id, subject=owner, role=Role.OWNER, created_at=now)
        self.store.commit(organization, member)
        return organization

    def memberships(self, actor: Actor) -> Sequence[Member]:
        return self.store.memberships(actor.subject)
