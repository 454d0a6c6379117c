"""Projects: bound for good to one storage connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorant.domain.errors import Invalid
from tensorant.domain.identity import Actor
from tensorant.domain.projects import Project
from tensorant.ports import Clock, Ids, Store
from tensorant.services.access import member_of


@dataclass(frozen=True)
class Projects:
    store: Store
    clock: Clock
    ids: Ids

    def create(self, actor: Actor, organization_id: str, *, name: str, storage_connection_id: str) -> Project:
        """Make a project. Raises `Invalid` if the connection is not for storage."""
        member_of(organization_id, actor, store=self.store)
        storage = self.store.connection(organization_id, storage_connection_id)
        if storage.kind.is_compute:
            raise Invalid(
                "not_a_storage_connection",
                f"{storage.name} is a connection to compute.",
                mend="Choose a storage connection, for instance of kind s3.",
                field="storage_connection_id",
            )
        project = Project(
            id=self.ids.new("proj"),
            organization_id=organization_id,
            name=name,
            storage_connection_id=storage_connection_id,
            created_at=self.clock.now(),
            created_by=actor.subject,
        )
        self.store.commit(project)
        return project

    def show(self, actor: Actor, organization_id: str, project_id: str) -> Project:
        member_of(organization_id, actor, store=self.store)
        return self.store.project(organization_id, project_id)

    def list(self, actor: Actor, organization_id: str) -> Sequence[Project]:
        member_of(organization_id, actor, store=self.store)
        return self.store.projects(organization_id)
