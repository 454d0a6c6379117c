"""The first rows of a valid dataset version, read from where they are stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorant.domain.errors import Conflict
from tensorant.domain.identity import Actor
from tensorant.ports import ObjectStores, Store
from tensorant.services.access import member_of
from tensorant.services.datasets import valid_version

PREVIEW_BYTES = 1 << 20
"""Read from the beginning: one row of the longest at least, and far less than a function may answer (6 MB)."""


@dataclass(frozen=True)
class Preview:
    """`more` says that the version has further rows."""

    rows: Sequence[Mapping[str, Any]]
    more: bool


@dataclass(frozen=True)
class DatasetPreviews:
    store: Store
    storages: ObjectStores

    def preview(self, actor: Actor, organization_id: str, version_id: str, *, rows: int) -> Preview:
        """Up to `rows` rows; fewer if they are long.

        Raises `Conflict` for a version that is not valid, or is not in the storage any more.
        """
        member_of(organization_id, actor, store=self.store)
        dataset = valid_version(organization_id, version_id, store=self.store)
        project = self.store.project(organization_id, dataset.project_id)
        connection = self.store.connection(organization_id, project.storage_connection_id)
        storage = self.storages.open(connection)
        found = storage.head(dataset.key)
        if found is None:
            raise Conflict(
                "dataset_missing",
                f"The dataset version {version_id} is not in the storage any more.",
                mend="Upload the same file again: it is stored in its old place.",
            )
        length = min(found.size, PREVIEW_BYTES)
        lines = storage.read(dataset.key, 0, length, etag=found.etag).split(b"\n")
        whole = lines if length == found.size else lines[:-1]
        shown = [json.loads(line) for line in whole if line.strip()][:rows]
        return Preview(rows=shown, more=len(shown) < (dataset.rows or 0))
