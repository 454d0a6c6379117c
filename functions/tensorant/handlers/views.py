"""What users receive. Nothing secret has a place here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Generic, Self, TypeVar

from pydantic import BaseModel

from tensorant.contract import JobSpec, VerificationReport
from tensorant.domain.connections import Catalog, CheckItem, Connection, GpuType, Settings
from tensorant.domain.failures import Failure
from tensorant.domain.identity import Member, Organization
from tensorant.domain.machines import Disposition, Machine, MachineState, Seen
from tensorant.domain.projects import DatasetFault, DatasetVersion, Project
from tensorant.domain.quotes import Quote
from tensorant.domain.runs import Outcome, Phase, Progress, Run
from tensorant.domain.timeline import Fact
from tensorant.ports import LogPage
from tensorant.services.datasets import Upload
from tensorant.services.drafts import Review
from tensorant.services.runs import AdapterDownload, RunStatus

View = TypeVar("View")


class OrganizationView(BaseModel):
    id: str
    name: str
    created_at: datetime

    @classmethod
    def of(cls, organization: Organization) -> Self:
        return cls(id=organization.id, name=organization.name, created_at=organization.created_at)


class MembershipView(BaseModel):
    organization_id: str
    role: str


class MeView(BaseModel):
    subject: str
    platform_admin: bool
    memberships: list[MembershipView]

    @classmethod
    def of(cls, subject: str, members: Sequence[Member], *, platform_admin: bool) -> Self:
        memberships = [
            MembershipView(organization_id=each.organization_id, role=each.role) for each in members
        ]
        return cls(subject=subject, platform_admin=platform_admin, memberships=memberships)


class ConnectionView(BaseModel):
    id: str
    name: str
    kind: str
    status: str
    settings: Settings
    checks: tuple[CheckItem, ...]
    checked_at: datetime | None
    account_id: str | None
    created_at: datetime

    @classmethod
    def of(cls, connection: Connection) -> Self:
        return cls(
            id=connection.id,
            name=connection.name,
            kind=connection.kind,
            status=connection.status,
            settings=connection.settings,
            checks=connection.checks,
            checked_at=connection.checked_at,
            account_id=connection.account_id,
            created_at=connection.created_at,
        )


class CatalogView(BaseModel):
    types: tuple[GpuType, ...]
    excluded: dict[str, str]
    disk_usd_per_gib_month: Decimal | None
    priced_at: datetime

    @classmethod
    def of(cls, catalog: Catalog) -> Self:
        return cls(
            types=catalog.types,
            excluded=catalog.excluded,
            disk_usd_per_gib_month=catalog.disk_usd_per_gib_month,
            priced_at=catalog.priced_at,
        )


class ProjectView(BaseModel):
    id: str
    name: str
    storage_connection_id: str
    created_at: datetime

    @classmethod
    def of(cls, project: Project) -> Self:
        return cls(
            id=project.id,
            name=project.name,
            storage_connection_id=project.storage_connection_id,
            created_at=project.created_at,
        )


class DatasetView(BaseModel):
    id: str
    project_id: str
    name: str
    status: str
    sha256: str | None
    rows: int | None
    bytes: int | None
    faults: tuple[DatasetFault, ...]
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


class QuoteView(BaseModel):
    """US dollars per hour, all in, and its parts."""

    usd_per_hour: Decimal
    compute_usd_per_hour: Decimal
    disk_usd_per_hour: Decimal
    disk_gib: int
    instance_type: str
    priced_at: datetime
    excluded: tuple[str, ...]

    @classmethod
    def of(cls, quote: Quote) -> Self:
        return cls(
            usd_per_hour=quote.usd_per_hour,
            compute_usd_per_hour=quote.compute_usd_per_hour,
            disk_usd_per_hour=quote.disk_usd_per_hour,
            disk_gib=quote.disk_gib,
            instance_type=quote.instance_type,
            priced_at=quote.priced_at,
            excluded=quote.excluded,
        )


class MachineView(BaseModel):
    attempt: int
    state: MachineState
    seen: Seen
    instance_id: str | None
    instance_type: str
    subnet_id: str
    asked_at: datetime
    started_at: datetime | None
    disposition: Disposition | None
    trouble: Failure | None
    confirmed_stopped_at: datetime | None
    confirmed_gone_at: datetime | None
    reason: str

    @classmethod
    def of(cls, machine: Machine) -> Self:
        return cls(
            attempt=machine.attempt,
            state=machine.state,
            seen=machine.seen,
            instance_id=machine.instance_id,
            instance_type=machine.candidate.instance_type,
            subnet_id=machine.candidate.subnet_id,
            asked_at=machine.asked_at,
            started_at=machine.started_at,
            disposition=machine.disposition,
            trouble=machine.trouble,
            confirmed_stopped_at=machine.confirmed_stopped_at,
            confirmed_gone_at=machine.confirmed_gone_at,
            reason=machine.reason,
        )


class RunView(BaseModel):
    """A run as lists show it."""

    id: str
    name: str
    project_id: str
    connection_id: str
    dataset_version_id: str
    instance_types: tuple[str, ...]
    price_limit_usd_per_hour: Decimal
    time_limit_minutes: int
    trial: bool
    spec: JobSpec
    created_at: datetime
    launched_at: datetime | None
    deadline_at: datetime | None
    ended_at: datetime | None
    cancelled_at: datetime | None
    outcome: Outcome | None
    failure: Failure | None

    @classmethod
    def of(cls, run: Run) -> Self:
        return cls(
            id=run.id,
            name=run.draft.name,
            project_id=run.draft.project_id,
            connection_id=run.draft.connection_id,
            dataset_version_id=run.draft.dataset_version_id,
            instance_types=run.draft.instance_types,
            price_limit_usd_per_hour=run.draft.price_limit_usd_per_hour,
            time_limit_minutes=run.draft.time_limit_minutes,
            trial=run.draft.trial,
            spec=run.spec,
            created_at=run.created_at,
            launched_at=run.launched_at,
            deadline_at=run.deadline_at,
            ended_at=run.ended_at,
            cancelled_at=run.cancelled_at,
            outcome=run.outcome,
            failure=run.failure,
        )


class RunStatusView(BaseModel):
    """Outcome, machine and cost: three separate facts; and where the run stands."""

    run: RunView
    phase: Phase
    outcome: Outcome | None
    machine: MachineView | None
    quote: QuoteView | None
    cost_usd: Decimal
    progress: Progress | None
    report: VerificationReport | None

    @classmethod
    def of(cls, status: RunStatus) -> Self:
        run = status.run
        quote = status.machine.quote if status.machine else run.quote
        return cls(
            run=RunView.of(run),
            phase=status.phase,
            outcome=run.outcome,
            machine=MachineView.of(status.machine) if status.machine else None,
            quote=QuoteView.of(quote) if quote else None,
            cost_usd=status.cost_usd,
            progress=status.progress,
            report=run.adapter.report if run.adapter else None,
        )


class ReviewView(BaseModel):
    run: RunView
    quote: QuoteView
    within_limit: bool
    note: str = "Nothing is reserved: price and availability are checked again at launch."

    @classmethod
    def of(cls, review: Review) -> Self:
        return cls(
            run=RunView.of(review.run), quote=QuoteView.of(review.quote), within_limit=review.within_limit
        )


class FactView(BaseModel):
    at: datetime
    kind: str
    source: str
    attempt: int | None
    message: str

    @classmethod
    def of(cls, fact: Fact) -> Self:
        return cls(at=fact.at, kind=fact.kind, source=fact.source, attempt=fact.attempt, message=fact.message)


class LogLineView(BaseModel):
    at: datetime
    source: str
    text: str


class LogPageView(BaseModel):
    lines: list[LogLineView]
    next: str | None

    @classmethod
    def of(cls, page: LogPage) -> Self:
        lines = [LogLineView(at=each.at, source=each.source, text=each.text) for each in page.lines]
        return cls(lines=lines, next=page.next)


class AdapterView(BaseModel):
    download_url: str
    expires_in_seconds: int
    key: str
    report: VerificationReport

    @classmethod
    def of(cls, download: AdapterDownload) -> Self:
        return cls(
            download_url=download.url,
            expires_in_seconds=int(download.expires_in.total_seconds()),
            key=download.adapter.key,
            report=download.adapter.report,
        )


class Listed(BaseModel, Generic[View]):
    items: list[View]
