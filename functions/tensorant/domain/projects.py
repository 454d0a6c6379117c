"""Projects and their dataset versions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Bound to one storage connection for good: its datasets and adapters live there."""

    id: str
    organization_id: str
    name: str
    storage_connection_id: str
    created_at: datetime
    created_by: str
    version: int = 0


class DatasetStatus(StrEnum):
    UPLOADING = "uploading"
    VALIDATING = "validating"
    VALID = "valid"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFault:
    """What is wrong with a line (1-based) of a dataset, and how to mend it."""

    line: int
    field: str
    message: str
    mend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetVersion:
    """Immutable once valid: `sha256` and `rows` name its content for good."""

    id: str
    organization_id: str
    project_id: str
    name: str
    status: DatasetStatus
    created_at: datetime
    created_by: str
    sha256: str | None = None
    rows: int | None = None
    bytes: int | None = None
    faults: tuple[DatasetFault, ...] = ()
    version: int = 0

    @property
    def key(self) -> str:
        """Object key under the storage connection's prefix; other content has another key."""
        return f"projects/{self.project_id}/datasets/{self.id}-{self.sha256}.jsonl"

    @property
    def staging_key(self) -> str:
        """Object key in the deployment's staging bucket."""
        return f"datasets/{self.organization_id}/{self.id}"

    def validating(self) -> DatasetVersion:
        return replace(self, status=DatasetStatus.VALIDATING)

    def valid(self, *, sha256: str, rows: int, size: int) -> DatasetVersion:
        return replace(self, status=DatasetStatus.VALID, sha256=sha256, rows=rows, bytes=size)

    def invalid(self, faults: tuple[DatasetFault, ...]) -> DatasetVersion:
        return replace(self, status=DatasetStatus.INVALID, faults=faults)
