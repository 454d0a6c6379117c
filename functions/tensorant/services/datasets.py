"""Dataset versions: what members do with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from tensorant.domain.errors import Conflict, NotFound
from tensorant.domain.identity import Actor
from tensorant.domain.projects import DatasetStatus, DatasetVersion
from tensorant.ports import Clock, Ids, Staging, Store, Workers
from tensorant.services.access import member_of
from tensorant.services.conflicts import until_settled

UPLOAD_LASTS = timedelta(hours=1)


@dataclass(frozen=True)
class Upload:
    """A version that waits for its file, and where to PUT it."""

    dataset: DatasetVersion
    url: str
    expires_in: timedelta = UPLOAD_LASTS


@dataclass(frozen=True)
class Datasets:
    """Uploaded to staging, validated by a worker on the way to the organization's storage."""

    store: Store
    staging: Staging
    workers: Workers
    clock: Clock
    ids: Ids

    def create(self, actor: Actor, organization_id: str, project_id: str, *, name: str) -> Upload:
        member_of(organization_id, actor, store=self.store)
        self.store.project(organization_id, project_id)
        dataset = DatasetVersion(
            id=self.ids.new("data"),
            organization_id=organization_id,
            project_id=project_id,
            name=name,
            status=DatasetStatus.UPLOADING,
            created_at=self.clock.now(),
            created_by=actor.subject,
        )
        self.store.commit(dataset)
        url = self.staging.upload_url(dataset.staging_key, lasting=UPLOAD_LASTS)
        return Upload(dataset, url)

    def complete(self, actor: Actor, organization_id: str, version_id: str) -> DatasetVersion:
        """The file is uploaded: validate it. Repeating this while it is being validated starts it again."""
        member_of(organization_id, actor, store=self.store)

        def mark() -> DatasetVersion:
            dataset = self.store.dataset_version(organization_id, version_id)
            if not dataset.is_open:
                raise Conflict(
                    "dataset_version_closed",
                    f"The dataset version {version_id} is {dataset.status} already.",
                    mend="Create another version for other content.",
                )
            dataset = dataset.validating(at=self.clock.now())
            self.store.commit(dataset)
            return dataset

        dataset = until_settled(mark)
        self.workers.validate_dataset(organization_id, version_id)
        return dataset

    def show(self, actor: Actor, organization_id: str, version_id: str) -> DatasetVersion:
        member_of(organization_id, actor, store=self.store)
        return self.store.dataset_version(organization_id, version_id)

    def list(self, actor: Actor, organization_id: str, project_id: str) -> Sequence[DatasetVersion]:
        """Of the same content only the version that had it first: the others are that version."""
        member_of(organization_id, actor, store=self.store)
        self.store.project(organization_id, project_id)
        found = self.store.dataset_versions(organization_id, project_id)
        return [dataset for dataset in found if dataset.same_as is None]


def valid_version(organization_id: str, version_id: str, *, store: Store) -> DatasetVersion:
    """A version that may be trained on: the first with its content. Raises `Conflict` while it is not valid."""
    dataset = store.dataset_version(organization_id, version_id)
    if dataset.same_as is not None:
        dataset = store.dataset_version(organization_id, dataset.same_as)
    if dataset.status is not DatasetStatus.VALID:
        raise Conflict(
            "dataset_not_valid",
            f"The dataset version {version_id} is {dataset.status}, not valid.",
            mend="Complete its upload, or mend the faults that it reports in another version.",
            field="dataset_version_id",
        )
    if dataset.sha256 is None or dataset.rows is None or dataset.bytes is None:
        raise NotFound("content of dataset version", version_id)
    return dataset
