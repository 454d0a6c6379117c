"""Dataset versions: uploaded to staging, validated by a worker on the way to the organization's storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from tensorant.domain.dataset_rows import Report
from tensorant.domain.errors import Conflict, NotFound
from tensorant.domain.identity import Actor
from tensorant.domain.projects import DatasetFault, DatasetStatus, DatasetVersion
from tensorant.ports import Clock, Ids, ObjectStores, Staging, Store, Workers
from tensorant.services.access import member_of
from tensorant.services.conflicts import until_settled

UPLOAD_LASTS = timedelta(hours=1)

MISSING = DatasetFault(
    line=0, field="", message="Nothing was uploaded.", mend="Upload the file, then complete the version."
)

CHANGED = DatasetFault(
    line=0,
    field="",
    message="The file was replaced while it was being validated.",
    mend="Create another version and upload its file once.",
)


@dataclass(frozen=True)
class Upload:
    """A version that waits for its file, and where to PUT it."""

    dataset: DatasetVersion
    url: str
    expires_in: timedelta = UPLOAD_LASTS


@dataclass(frozen=True)
class Datasets:
    """What members do with dataset versions."""

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
            if dataset.status in {DatasetStatus.VALID, DatasetStatus.INVALID}:
                raise Conflict(
                    "dataset_version_closed",
                    f"The dataset version {version_id} is {dataset.status} already.",
                    mend="Create another version for other content.",
                )
            dataset = dataset.validating()
            self.store.commit(dataset)
            return dataset

        dataset = until_settled(mark)
        self.workers.validate_dataset(organization_id, version_id)
        return dataset

    def show(self, actor: Actor, organization_id: str, version_id: str) -> DatasetVersion:
        member_of(organization_id, actor, store=self.store)
        return self.store.dataset_version(organization_id, version_id)

    def list(self, actor: Actor, organization_id: str, project_id: str) -> Sequence[DatasetVersion]:
        member_of(organization_id, actor, store=self.store)
        self.store.project(organization_id, project_id)
        return self.store.dataset_versions(organization_id, project_id)


@dataclass(frozen=True)
class DatasetValidator:
    """The worker's side."""

    store: Store
    storages: ObjectStores
    staging: Staging

    def validate(self, organization_id: str, version_id: str) -> DatasetVersion:
        """Judge the staged file, and copy it to the organization's storage if it is valid.

        A version that is closed already is left as it is, so a repeat changes nothing.
        """
        dataset = self.store.dataset_version(organization_id, version_id)
        if dataset.status is not DatasetStatus.VALIDATING:
            return dataset
        judged = self._judged(dataset)

        def save() -> DatasetVersion:
            current = self.store.dataset_version(organization_id, version_id)
            if current.status is not DatasetStatus.VALIDATING:
                return current
            self.store.commit(replace(judged, version=current.version))
            return judged

        return until_settled(save)

    def _judged(self, dataset: DatasetVersion) -> DatasetVersion:
        """Read once to judge; only a valid file is then copied."""
        chunks = self.staging.stream(dataset.staging_key)
        if chunks is None:
            return dataset.invalid((MISSING,))
        report = Report()
        for _ in report.reading(chunks):
            pass
        if report.faults:
            return dataset.invalid(tuple(report.faults))
        valid = dataset.valid(sha256=report.sha256, rows=report.rows, size=report.size)
        if self._copied(valid).sha256 != report.sha256:
            return dataset.invalid((CHANGED,))
        return valid

    def _copied(self, dataset: DatasetVersion) -> Report:
        project = self.store.project(dataset.organization_id, dataset.project_id)
        connection = self.store.connection(dataset.organization_id, project.storage_connection_id)
        report = Report()
        chunks = self.staging.stream(dataset.staging_key) or iter(())
        self.storages.open(connection).put(dataset.key, report.reading(chunks))
        return report


def valid_version(organization_id: str, version_id: str, *, store: Store) -> DatasetVersion:
    """A version that may be trained on. Raises `Conflict` while it is not valid."""
    dataset = store.dataset_version(organization_id, version_id)
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
