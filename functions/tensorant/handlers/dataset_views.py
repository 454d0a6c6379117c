"""What the API answers about dataset versions."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel

from tensorant.domain.datasets.report import DatasetFault, DatasetReport
from tensorant.domain.projects import DatasetVersion
from tensorant.services.dataset_previews import Preview
from tensorant.services.datasets import Upload


class DatasetView(BaseModel):
    """`same_as` is the version that had the same content before, and is the one to use."""

    id: str
    project_id: str
    name: str
    status: str
    sha256: str | None
    rows: int | None
    bytes: int | None
    faults: tuple[DatasetFault, ...]
    report: DatasetReport | None
    same_as: str | None
    trouble: DatasetFault | None
    """What kept the validation from its end the last time it was started."""
    created_at: datetime

    @classmethod
    def of(cls, dataset: DatasetVersion) -> Self:
        return cls(
            id=dataset.id,
            project_id=dataset.project_id,
            name=dataset.name,
            status=dataset.status,
            sha256=dataset.sha256,
            rows=dataset.rows,
            bytes=dataset.bytes,
            faults=dataset.faults,
            report=dataset.report,
            same_as=dataset.same_as,
            trouble=dataset.trouble,
            created_at=dataset.created_at,
        )


class UploadView(BaseModel):
    """PUT the file to `upload_url`, then complete the version."""

    dataset_version: DatasetView
    upload_url: str
    expires_in_seconds: int

    @classmethod
    def of(cls, upload: Upload) -> Self:
        return cls(
            dataset_version=DatasetView.of(upload.dataset),
            upload_url=upload.url,
            expires_in_seconds=int(upload.expires_in.total_seconds()),
        )


class PreviewView(BaseModel):
    """The first rows as they are stored; `more` says that there are others."""

    rows: list[dict[str, Any]]
    more: bool

    @classmethod
    def of(cls, preview: Preview) -> Self:
        return cls(rows=[dict(row) for row in preview.rows], more=preview.more)
