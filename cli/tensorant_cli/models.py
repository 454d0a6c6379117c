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


class Notice(View):
    """What will stand in a connection's way before long."""

    code: str
    message: str
    mend: str = ""


class Connection(View):
    """`credentials_expire_at` None: they last until they are replaced."""

    id: str
    name: str
    kind: str
    status: str
    settings: dict[str, Any]
    checks: list[CheckItem] = []
    checked_at: datetime | None = None
    account_id: str | None = None
    managed_by: str = "organization"
    credentials_expire_at: datetime | None = None
    warnings: list[Notice] = []
    created_at: datetime


class Made(View):
    """A document for an AWS account; `notes` say what was assumed in it."""

    account_id: str
    region: str
    notes: list[str] = []


class Policy(Made):
    policy: dict[str, Any]


class Connector(Made):
    template: dict[str, Any]


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


class DatasetLengths(View):
    """Of rows, in estimated tokens."""

    half: int
    nine_in_ten: int
    ninety_nine_in_hundred: int
    longest: int


class DatasetReport(View):
    """What a valid file is; `tokens` and `lengths` are estimates."""

    format: str
    compression: str
    uploaded_bytes: int
    tokens: int
    lengths: DatasetLengths
    roles: dict[str, int] = {}
    tool_rows: int = 0
    duplicates: int
    compared_rows: int
    unused_fields: list[str] = []


class DatasetVersion(View):
    """`same_as` is the version that had the same content before, and is the one to use."""

    id: str
    project_id: str
    name: str
    status: str
    sha256: str | None = None
    rows: int | None = None
    bytes: int | None = None
    faults: list[DatasetFault] = []
    report: DatasetReport | None = None
    same_as: str | None = None
    trouble: DatasetFault | None = None
    created_at: datetime


class DatasetPreview(View):
    rows: list[dict[str, Any]]
    more: bool


class Upload(View):
    dataset_version: DatasetVersion
    upload_url: str
    expires_in_seconds: int


class Part(View):
    name: str
    usd_per_hour: Decimal
    basis: str


class Quote(View):
    """US dollars per hour, all in, and its parts; `excluded` is in none of them."""

    usd_per_hour: Decimal
    instance_type: str
    priced_at: datetime
    priced_seconds_ago: int
    parts: list[Part]
    excluded: list[str] = []


class ReviewedQuote(Quote):
    within_limit: bool


class Quota(View):
    """vCPUs; None where unknown, and `unknown_because` says why."""

    family: str
    code: str
    needed: int
    limit: int | None = None
    in_use: int | None = None
    headroom: int | None = None
    suffices: bool | None = None
    unknown_because: str = ""


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
    volume_id: str | None = None
    deleted_on_termination: bool | None = None
    left_over: str | None = None
    """What a released machine left behind, with what to do."""


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


class Fact(View):
    at: datetime
    kind: str
    source: str
    attempt: int | None = None
    message: str = ""


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
    warnings: list[Fact] = []
    """What its provider has announced of its machine, or what stays behind it, with what to do."""

    @property
    def ended(self) -> bool:
        """Nothing more will happen by itself: there is an outcome, and the machine is at its goal."""
        return self.phase == "ended"


class Obstacle(View):
    """What stands against launching. One that does not block is tried all the same."""

    code: str
    message: str
    mend: str = ""
    field: str | None = None
    blocking: bool


class Review(View):
    """`quote` is of the type that would be asked for first, `quotes` of all; `most_usd` until the time limit."""

    run: Run
    quote: Quote
    within_limit: bool
    quotes: list[ReviewedQuote]
    most_usd: Decimal
    quota: Quota
    problems: list[Obstacle]
    note: str = ""


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
