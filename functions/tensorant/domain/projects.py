"""Projects and their dataset versions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, StrEnum, auto

from tensorant.domain.datasets.report import DatasetFault, DatasetReport

STUCK_AFTER = timedelta(minutes=20)
"""A worker has a quarter of an hour: what is validated for longer has no worker any more."""
MAX_RESTARTS = 3
ABANDONED_AFTER = timedelta(days=1)
"""As long as a file may lie in staging; the right to upload one ends long before."""


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


class Care(Enum):
    """What the sweep does for a dataset version that got stuck."""

    RESTART = auto()
    GIVE_UP = auto()
    ABANDON = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetContent:
    """Which version of a project has a content: the first that was found to have it."""

    organization_id: str
    project_id: str
    sha256: str
    version_id: str
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetVersion:
    """Immutable once valid: `sha256`, `rows` and `bytes` name its content, in the normal form, for good.

    They are set as soon as the file was found to be without faults; only then is it copied to the storage, and
    only then is the version valid. So a worker that died while it copied need not judge again.
    """

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
    report: DatasetReport | None = None
    """None too for versions that became valid before there were reports."""
    same_as: str | None = None
    """The version of the project that had this content before."""
    validating_since: datetime | None = None
    restarts: int = 0
    trouble: DatasetFault | None = None
    """What last kept the worker from its end, and is not the file's fault."""
    stored_key: str | None = None
    """None for versions that became valid when keys still named the version."""
    version: int = 0

    @property
    def key(self) -> str:
        """Object key under the storage connection's prefix; other content has another key."""
        return self.stored_key or f"projects/{self.project_id}/datasets/{self.id}-{self.sha256}.jsonl"

    @property
    def staging_key(self) -> str:
        """Object key in the deployment's staging bucket."""
        return f"datasets/{self.organization_id}/{self.id}"

    @property
    def is_open(self) -> bool:
        return self.status in {DatasetStatus.UPLOADING, DatasetStatus.VALIDATING}

    @property
    def judged(self) -> bool:
        """Whether the file is known to be without faults."""
        return self.sha256 is not None

    def validating(self, *, at: datetime) -> DatasetVersion:
        """From the beginning: the file may be another one."""
        return replace(
            self,
            status=DatasetStatus.VALIDATING,
            validating_since=at,
            restarts=0,
            sha256=None,
            rows=None,
            bytes=None,
            report=None,
            trouble=None,
            stored_key=None,
        )

    def sound(self, *, sha256: str, rows: int, size: int, report: DatasetReport) -> DatasetVersion:
        """Without faults; still to be copied, to a place that its content alone names."""
        key = f"projects/{self.project_id}/datasets/{sha256}.jsonl"
        return replace(self, sha256=sha256, rows=rows, bytes=size, report=report, stored_key=key)

    def valid(self, *, same_as: str | None = None) -> DatasetVersion:
        return replace(self, status=DatasetStatus.VALID, same_as=same_as, trouble=None)

    def invalid(self, faults: tuple[DatasetFault, ...]) -> DatasetVersion:
        closed = replace(
            self, status=DatasetStatus.INVALID, faults=faults, sha256=None, rows=None, bytes=None
        )
        return replace(closed, report=None, stored_key=None, trouble=None)

    def restarted(self, *, at: datetime) -> DatasetVersion:
        return replace(self, validating_since=at, restarts=self.restarts + 1)

    def care(self, *, at: datetime) -> Care | None:
        """What the sweep should do now; None while others are at work, or nobody need be."""
        if self.status is DatasetStatus.UPLOADING:
            return Care.ABANDON if at > self.created_at + ABANDONED_AFTER else None
        if self.status is not DatasetStatus.VALIDATING:
            return None
        if at < (self.validating_since or self.created_at) + STUCK_AFTER:
            return None
        return Care.RESTART if self.restarts < MAX_RESTARTS else Care.GIVE_UP
