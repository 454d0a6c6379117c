"""What users receive. Nothing secret has a place here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Generic, Self, TypeVar

from pydantic import BaseModel

from tensorant.contract import JobSpec, VerificationReport
from tensorant.domain.failures import Failure
from tensorant.domain.identity import Member, Organization
from tensorant.domain.machines import Cause, Disposition, Machine, MachineState, Seen
from tensorant.domain.projects import Project
from tensorant.domain.quotes import Part, Quote
from tensorant.domain.runs import Outcome, Phase, Progress, Run
from tensorant.domain.timeline import Fact
from tensorant.domain.volumes import told_left_over
from tensorant.ports import LogPage
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


class QuoteView(BaseModel):
    """US dollars per hour, all in, and its parts; `excluded` is in none of them."""

    usd_per_hour: Decimal
    compute_usd_per_hour: Decimal
    disk_usd_per_hour: Decimal
    disk_gib: int
    instance_type: str
    priced_at: datetime
    priced_seconds_ago: int
    parts: tuple[Part, ...]
    excluded: tuple[str, ...]

    @classmethod
    def of(cls, quote: Quote, *, at: datetime) -> Self:
        return cls(
            usd_per_hour=quote.usd_per_hour,
            compute_usd_per_hour=quote.compute_usd_per_hour,
            disk_usd_per_hour=quote.disk_usd_per_hour,
            disk_gib=quote.disk_gib,
            instance_type=quote.instance_type,
            priced_at=quote.priced_at,
            priced_seconds_ago=int(quote.age(at).total_seconds()),
            parts=quote.parts,
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
    cause: Cause | None
    """Who brought it to a stop or to its end."""
    volume_id: str | None
    deleted_on_termination: bool | None
    """Whether its disk goes with it; None while that is not known."""
    left_over: str | None
    """What a released machine left behind, what that costs, and what to do."""

    @classmethod
    def of(cls, machine: Machine) -> Self:
        volume = machine.root_volume
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
            cause=machine.cause,
            volume_id=volume.volume_id if volume else None,
            deleted_on_termination=volume.deleted_on_termination if volume else None,
            left_over=told_left_over(machine) or None,
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


class FactView(BaseModel):
    at: datetime
    kind: str
    source: str
    attempt: int | None
    message: str

    @classmethod
    def of(cls, fact: Fact) -> Self:
        return cls(at=fact.at, kind=fact.kind, source=fact.source, attempt=fact.attempt, message=fact.message)


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
    warnings: list[FactView]
    """What is scheduled for its machine, or stays behind it, with what to do."""

    @classmethod
    def of(cls, status: RunStatus) -> Self:
        run = status.run
        quote = status.machine.quote if status.machine else run.quote
        return cls(
            run=RunView.of(run),
            phase=status.phase,
            outcome=run.outcome,
            machine=MachineView.of(status.machine) if status.machine else None,
            quote=QuoteView.of(quote, at=status.at) if quote else None,
            cost_usd=status.cost_usd,
            progress=status.progress,
            report=run.adapter.report if run.adapter else run.report,
            warnings=[FactView.of(fact) for fact in status.warnings],
        )


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
