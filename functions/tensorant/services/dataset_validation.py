"""The worker's side of a dataset version: judge the staged file, then copy it to the organization's storage.

It may be started more than once, be cut off at any point (Lambda ends it after a quarter of an hour) and run
twice at a time. What it found is stored before it copies, so that another start goes on from there; the place
of the copy follows from the content, so that two copies are one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from tensorant.domain.datasets.compression import UnreadableError
from tensorant.domain.datasets.judging import Content, judge, normal_form
from tensorant.domain.datasets.report import DatasetFault
from tensorant.domain.errors import TensorantError
from tensorant.domain.projects import DatasetContent, DatasetStatus, DatasetVersion
from tensorant.ports import ObjectStores, Staging, Store
from tensorant.services.conflicts import until_settled

MISSING = DatasetFault(
    line=0, field="", message="Nothing was uploaded.", mend="Upload the file, then complete the version."
)

CHANGED = DatasetFault(
    line=0,
    field="",
    message="The file was replaced while it was being validated.",
    mend="Create another version and upload its file once.",
)


class _FaultyError(Exception):
    """The file is at fault, and the version is to be closed as invalid."""

    def __init__(self, faults: tuple[DatasetFault, ...]) -> None:
        super().__init__("the dataset has faults")
        self.faults = faults


@dataclass(frozen=True)
class DatasetValidator:
    store: Store
    storages: ObjectStores
    staging: Staging

    def validate(self, organization_id: str, version_id: str) -> DatasetVersion:
        """Bring a version that is being validated to its end: valid or invalid. A closed one is left as it is.

        Raises what the staging or the storage raises, having stored it as the version's trouble: starting
        again may help.
        """
        dataset = self.store.dataset_version(organization_id, version_id)
        if dataset.status is not DatasetStatus.VALIDATING:
            return dataset
        try:
            if not dataset.judged:
                dataset = self._judged(dataset)
            self._copy(dataset)
        except _FaultyError as error:
            faults = error.faults
            return self._save(dataset, lambda current: current.invalid(faults))
        except TensorantError as error:
            trouble = DatasetFault(line=0, field="", message=error.message, mend=error.mend)
            self._save(dataset, lambda current: replace(current, trouble=trouble))
            raise
        return self._closed(dataset)

    def _judged(self, dataset: DatasetVersion) -> DatasetVersion:
        """Read the whole file and store what it is. Raises `_FaultyError`."""
        found = judge(self._staged(dataset))
        if not isinstance(found, Content):
            raise _FaultyError(found)
        return self._save(
            dataset,
            lambda current: current.sound(
                sha256=found.sha256, rows=found.rows, size=found.bytes, report=found.report
            ),
        )

    def _copy(self, dataset: DatasetVersion) -> None:
        """Write the normal form to its place, where it may be already: then it is written again, the same.

        Raises `_FaultyError` if the file is not the one that was judged; nothing is stored then.
        """
        if dataset.status is not DatasetStatus.VALIDATING or dataset.sha256 is None:
            return  # somebody else was faster, or has started again
        project = self.store.project(dataset.organization_id, dataset.project_id)
        connection = self.store.connection(dataset.organization_id, project.storage_connection_id)
        chunks = normal_form(self._staged(dataset))
        self.storages.open(connection).put(dataset.key, _proved(chunks, dataset.sha256))

    def _staged(self, dataset: DatasetVersion) -> Iterator[bytes]:
        chunks = self.staging.stream(dataset.staging_key)
        if chunks is None:
            raise _FaultyError((MISSING,))
        return chunks

    def _closed(self, dataset: DatasetVersion) -> DatasetVersion:
        """Valid; of a content that the project has already, as the same version as the one that had it first."""

        def close() -> DatasetVersion:
            current = self.store.dataset_version(dataset.organization_id, dataset.id)
            if current.status is not DatasetStatus.VALIDATING or current.sha256 != dataset.sha256:
                return current
            known = self.store.dataset_content(current.project_id, str(current.sha256))
            if known is not None:
                closed = current.valid(same_as=None if known.version_id == current.id else known.version_id)
                self.store.commit(closed)
                return closed
            closed = current.valid()
            self.store.commit(closed, _content(closed))
            return closed

        return until_settled(close)

    def _save(
        self, dataset: DatasetVersion, change: Callable[[DatasetVersion], DatasetVersion]
    ) -> DatasetVersion:
        """Change what is being validated; what is closed meanwhile stays as it is."""

        def save() -> DatasetVersion:
            current = self.store.dataset_version(dataset.organization_id, dataset.id)
            if current.status is not DatasetStatus.VALIDATING:
                return current
            changed = change(current)
            self.store.commit(changed)
            return changed

        return until_settled(save)


def _content(dataset: DatasetVersion) -> DatasetContent:
    return DatasetContent(
        organization_id=dataset.organization_id,
        project_id=dataset.project_id,
        sha256=str(dataset.sha256),
        version_id=dataset.id,
    )


def _proved(chunks: Iterable[bytes], sha256: str) -> Iterator[bytes]:
    """The chunks, but for the last moment: if they were others than agreed, the upload breaks instead of ending.

    Otherwise a file that is replaced at the right time could take the place of another version's content.
    """
    digest = hashlib.sha256()
    try:
        for chunk in chunks:
            digest.update(chunk)
            yield chunk
    except UnreadableError as error:
        raise _FaultyError((CHANGED,)) from error
    if digest.hexdigest() != sha256:
        raise _FaultyError((CHANGED,))
