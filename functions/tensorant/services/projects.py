"""Projects: bound for good to one storage connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorant.domain.errors import Invalid
from tensorant.domain.identity import Actor
from tensorant.domain.projects import Project
from tensorant.ports import Clock, Ids, Store
from tensorant.services.access import connection_of, member_of
from tensorant.services.conflicts import until_settled


@dataclass(frozen=True)
class Projects:
    store: Store
    clock: Clock
    ids: Ids

    def create(self, actor: Actor, organization_id: str, *, name: str, storage_connection_id: str) -> Project:
        """Make a project. Raises `Invalid` if the connection is not for storage.

        Conditioned on the connection's version, so that it can't be removed at the same time.
        """
        member_of(organization_id, actor, store=self.store)
        project = Project(
            id=self.ids.new("proj"),
            organization_id=organization_id,
            name=name,
            storage_connection_id=storage_connection_id,
            created_at=self.clock.now(),
            created_by=actor.subject,
        )

        def save() -> None:
            storage = connection_of(organization_id, storage_connection_id, store=self.store)
            if storage.kind.is_compute:
                raise Invalid(
                    "not_a_storage_connection",
                    f"{storage.name} is a connection to compute.",
                    mend="Choose a storage connection, for instance of kind s3.",
                    field="storage_connection_id",
                )
            self.store.commit(project, unchanged=[storage])

        until_settled(save)
        return project

    def show(self, actor: Actor, organization_id: str, project_id: str) -> Project:
        member_of(organization_id, actor, store=self.store)
        return self.store.project(organization_id, project_id)

    def list(self, actor: Actor, organization_id: str) -> Sequence[Project]:
        member_of(organization_id, actor, store=self.store)
        return self.store.projects(organization_id)
