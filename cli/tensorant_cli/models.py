"""What the API answers, as far as a client reads it. Unknown fields are kept and never refused."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from tensorant.contract import JobSpec, VerificationReport

Item = TypeVar("Item")


class View(BaseModel):
    """Frozen. Fields that a newer API adds are kept, so that `--json` shows them."""

    model_config = ConfigDict(frozen=True, extra="allow")


class Listed(View, Generic[Item]):
    items: list[Item]


class Organization(View):
    id: str
    name: str
    created_at: datetime


class Membership(View):
    organization_id: str
    role: str


class Me(View):
    subject: str
    platform_admin: bool
    memberships: list[Membership]


class CheckItem(View):
    name: str
    verdict: str
    seen: str
    mend: str = ""


class Connection(View):
    id: str
    name: str
    kind: str
    status: str
    settings: dict[str, Any]
    checks: list[CheckItem] = []
    checked_at: datetime | None = None
    account_id: str | None = None
    created_at: datetime


class GpuType(View):
    instance_type: str
    gpu: str
    gpu_memory_mib: int
    vcpus: int
    memory_mib: int
    zones: list[str] = []
    usd_per_hour: Decimal | None = None


class Catalog(View):
    types: list[GpuType]
    excluded: dict[str, str] = {}
    disk_usd_per_gib_month: Decimal | None = None
    priced_at: datetime


class Project(View):
    id: str
    name: str
    storage_connection_id: str
    created_at: datetime


class DatasetFault(View):
    line: int
    field: str
    message: str
    mend: str


class DatasetVersion(View):
    id: str
    project_id: str
    name: str
    status: str
    sha256: str | None = None
    rows: int | None = None
    bytes: int | None = None
    faults: list[DatasetFault] = []
    created_at: datetime


class Upload(View):
    dataset_version: DatasetVersion
    upload_url: str
    expires_in_seconds: int


class Quote(View):
    """US dollars per hour, all in, and its parts."""

    usd_per_hour: Decimal
    compute_usd_per_hour: Decimal
    disk_usd_per_hour: Decimal
    disk_gib: int
    instance_type: str
    priced_at: datetime
    excluded: list[str] = []


class Failure(View):
    failure_class: str
    code: str
    message: str
    mend: str = ""


class Machine(View):
    attempt: int
    state: str
    seen: str
    instance_id: str | None = None
    instance_type: str
    subnet_id: str
    asked_at: datetime
    started_at: datetime | None = None
    disposition: str | None = None
    confirmed_stopped_at: datetime | None = None
    confirmed_gone_at: datetime | None = None
    reason: str = ""
    trouble: Failure | None = None


class Run(View):
    id: str
    name: str
    project_id: str
    connection_id: str
    dataset_version_id: str
    instance_types: list[str]
    price_limit_usd_per_hour: Decimal
    time_limit_minutes: int
    trial: bool
    spec: JobSpec
    created_at: datetime
    launched_at: datetime | None = None
    deadline_at: datetime | None = None
    ended_at: datetime | None = None
    cancelled_at: datetime | None = None
    outcome: str | None = None
    failure: Failure | None = None


class Progress(View):
    phase: str
    heard_at: datetime | None = None
    step: int | None = None
    steps_total: int | None = None
    first_loss: float | None = None
    loss: float | None = None
    seconds_left: float | None = None


class RunStatus(View):
    """Outcome, machine and cost: three separate facts; and where the run stands."""

    run: Run
    phase: str
    outcome: str | None = None
    machine: Machine | None = None
    quote: Quote | None = None
    cost_usd: Decimal
    progress: Progress | None = None
    report: VerificationReport | None = None

    @property
    def ended(self) -> bool:
        """Nothing more will happen by itself: there is an outcome, and the machine is at its goal."""
        return self.phase == "ended"


class Review(View):
    run: Run
    quote: Quote
    within_limit: bool
    note: str = ""


class Fact(View):
    at: datetime
    kind: str
    source: str
    attempt: int | None = None
    message: str = ""


class LogLine(View):
    at: datetime
    source: str
    text: str


class LogPage(View):
    lines: list[LogLine]
    next: str | None = None


class AdapterDownload(View):
    download_url: str
    expires_in_seconds: int
    key: str
    report: VerificationReport
