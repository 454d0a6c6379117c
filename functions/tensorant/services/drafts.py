"""Drafting a run: everything that can be known to be wrong is told before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorant.contract import DatasetRef
from tensorant.domain.connections import Catalog, Connection
from tensorant.domain.errors import Conflict, Invalid
from tensorant.domain.identity import Actor
from tensorant.domain.runs import Draft, Run
from tensorant.ports import Clock, Ids, Store
from tensorant.services.access import member_of
from tensorant.services.datasets import valid_version
from tensorant.services.facts import run_fact


@dataclass(frozen=True)
class Drafts:
    store: Store
    clock: Clock
    ids: Ids

    def create(self, actor: Actor, organization_id: str, draft: Draft) -> Run:
        """Store a draft. Rents nothing and reserves nothing.

        Raises `NotFound` for foreign or unknown ids, `Conflict` for things that are not ready, and
        `Invalid` for a type that the connection's catalog does not offer.
        """
        member_of(organization_id, actor, store=self.store)
        project = self.store.project(organization_id, draft.project_id)
        dataset = valid_version(organization_id, draft.dataset_version_id, store=self.store)
        if dataset.project_id != project.id:
            raise Invalid(
                "dataset_of_other_project",
                f"The dataset version {dataset.id} belongs to another project.",
                mend=f"Choose a dataset version of {project.id}.",
                field="dataset_version_id",
            )
        connection = ready_compute(organization_id, draft.connection_id, store=self.store)
        storage = ready_storage(organization_id, project.storage_connection_id, store=self.store)
        require_offered(draft, self.store.catalog(connection.id))
        now = self.clock.now()
        run_id = self.ids.new("run")
        run = Run(
            id=run_id,
            organization_id=organization_id,
            draft=replace(draft, dataset_version_id=dataset.id),
            created_at=now,
            created_by=actor.subject,
            dataset=DatasetRef(sha256=dataset.sha256 or "", rows=dataset.rows or 0, bytes=dataset.bytes or 0),
            storage_connection_id=project.storage_connection_id,
            archive_path=storage.archive_path(run_id),
        )
        self.store.commit(run, facts=[run_fact(run, "run_drafted", draft.name, at=now, source=actor.subject)])
        return run


def ready_compute(organization_id: str, connection_id: str, *, store: Store) -> Connection:
    """A compute connection that has passed its check. Raises `Invalid` or `Conflict`."""
    connection = store.connection(organization_id, connection_id)
    if not connection.kind.is_compute:
        raise Invalid(
            "not_a_compute_connection",
            f"{connection.name} is a connection to storage.",
            mend="Choose a compute connection, for instance of kind aws.",
            field="connection_id",
        )
    connection.require_usable(named_by="connection_id")
    return connection


def ready_storage(organization_id: str, connection_id: str, *, store: Store) -> Connection:
    """A project's storage, if its last check was good and machines can work with it. Raises `Conflict`.

    What a machine gets are presigned URLs; there are no other rights for it yet.
    """
    connection = store.connection(organization_id, connection_id)
    connection.require_usable(named_by="project_id")
    if not connection.storage_abilities.presigned:
        raise Conflict(
            "storage_without_presigning",
            f"No run can be launched on {connection.name}: machines get presigned URLs, and this storage takes none.",
            mend="Use a project whose storage takes presigned URLs (AWS S3, R2, MinIO, …); the connection's check "
            "tells whether it does.",
            field="project_id",
        )
    return connection


def require_offered(draft: Draft, catalog: Catalog | None) -> None:
    """Raise `Invalid` for a type that can't be used here, with the reason and the usable ones."""
    known = catalog.types if catalog else ()
    types = {each.instance_type for each in known if each.usd_per_hour is not None}
    excluded = {each.instance_type: "its price is unknown" for each in known} | (
        catalog.excluded if catalog else {}
    )
    for number, instance_type in enumerate(draft.instance_types):
        if instance_type in types:
            continue
        reason = excluded.get(instance_type, "it is not in the connection's GPU catalog")
        raise Invalid(
            "instance_type_not_offered",
            f"{instance_type} can't be used: {reason}.",
            mend=f"Choose one of {', '.join(sorted(types)) or 'none: check the connection'}.",
            field=f"instance_types[{number}]",
        )
