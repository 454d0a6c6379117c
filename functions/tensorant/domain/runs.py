"""A run: drafted, launched once, ended with an outcome that never changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from tensorant.contract import (
    ARCHIVE_NAME,
    BaseModelRef,
    DatasetRef,
    JobSpec,
    LoraSpec,
    TrainingSpec,
    VerificationReport,
)
from tensorant.domain.failures import Failure
from tensorant.domain.machines import Candidate
from tensorant.domain.quotes import Quote

TRIAL_ROWS = 32
"""How many rows a trial trains on, at most."""

UNPACKED_IMAGE_GIB = 30
"""Disk that the training image takes once pulled."""


RELEASE_MARGIN = timedelta(minutes=30)
"""How long credentials must outlive the time limit: for the last upload, its verification and the release."""


class Outcome(StrEnum):
    """How a run ended. NEEDS_RECOVERY is open: it becomes one of the others, once."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    NEEDS_RECOVERY = "needs_recovery"

    @property
    def final(self) -> bool:
        return self is not Outcome.NEEDS_RECOVERY


class Operation(StrEnum):
    """What an execution of the state machine is for."""

    LAUNCH = "launch"
    VERIFY_RECOVERED = "verify_recovered"
    RELEASE = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a person asked for; it does not change once launched."""

    name: str
    project_id: str
    connection_id: str
    dataset_version_id: str
    base: BaseModelRef
    lora: LoraSpec
    training: TrainingSpec
    instance_types: tuple[str, ...]
    price_limit_usd_per_hour: Decimal
    time_limit_minutes: int
    workspace_gib: int
    trial: bool = False

    @property
    def time_limit(self) -> timedelta:
        return timedelta(minutes=self.time_limit_minutes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """Where a verified adapter lies, pinned to the bytes that were verified."""

    key: str
    etag: str
    report: VerificationReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    id: str
    organization_id: str
    draft: Draft
    created_at: datetime
    created_by: str
    dataset: DatasetRef
    storage_connection_id: str
    launched_at: datetime | None = None
    launched_by: str | None = None
    executions: int = 0
    """How many executions were started for it; each is named run-operation-number."""
    operation: Operation | None = None
    claimed: bool = False
    deadline_at: datetime | None = None
    quote: Quote | None = None
    """As rechecked at launch."""
    attempt: int = 0
    """The latest attempt; 0 before the first ask."""
    refused: tuple[Candidate, ...] = ()
    cancelled_at: datetime | None = None
    """When a person asked to end it, whether its output is kept or not."""
    outcome: Outcome | None = None
    failure: Failure | None = None
    adapter: Adapter | None = None
    archive_path: str = ARCHIVE_NAME
    """Where its machine keeps the archive, under the data directory."""
    report: VerificationReport | None = None
    """The verdict on an archive that was not sound."""
    ended_at: datetime | None = None
    version: int = 0

    @property
    def spec(self) -> JobSpec:
        """What the trainer is told; its hash is what the archive must carry."""
        rows = min(TRIAL_ROWS, self.dataset.rows) if self.draft.trial else None
        return JobSpec(
            run_id=self.id,
            base=self.draft.base,
            lora=self.draft.lora,
            training=self.draft.training,
            dataset=self.dataset.model_copy(update={"sample_rows": rows}),
            archive_path=self.archive_path,
        )

    @property
    def execution_name(self) -> str:
        return f"{self.id}-{self.operation}-{self.executions}"

    def prefix(self, attempt: int) -> str:
        """Object prefix of one attempt, under the storage connection's prefix."""
        return f"runs/{self.id}/attempt-{attempt}/"

    def launched(self, by: str, *, at: datetime) -> Run:
        return replace(
            self, launched_at=at, launched_by=by, operation=Operation.LAUNCH, executions=self.executions + 1
        )

    @property
    def under_way(self) -> bool:
        """Launched, and not yet known how it ends."""
        return self.launched_at is not None and self.outcome is None

    def releasing(self) -> Run:
        """With another execution recorded, which releases its machine."""
        return replace(self, operation=Operation.RELEASE, executions=self.executions + 1)

    def cancelled(self, *, at: datetime, keep: bool) -> Run:
        """As a person ended it: kept output still needs recovery, or to be discarded."""
        outcome = Outcome.NEEDS_RECOVERY if keep else Outcome.CANCELLED
        return replace(self.ended(outcome, at=at), cancelled_at=self.cancelled_at or at)

    def claim(self, quote: Quote, *, at: datetime) -> Run:
        """The execution takes the run: from here its time limit runs, downloads included."""
        return replace(self, claimed=True, quote=quote, deadline_at=at + self.draft.time_limit)

    def credentials_needed_until(self, now: datetime) -> datetime:
        """The end of its time limit, begun or begun now, and of the release after it."""
        return (self.deadline_at or now + self.draft.time_limit) + RELEASE_MARGIN

    def asking(self, attempt: int) -> Run:
        return replace(self, attempt=attempt)

    def refusing(self, candidate: Candidate) -> Run:
        return replace(self, refused=(*self.refused, candidate))

    def ended(self, outcome: Outcome, *, at: datetime, failure: Failure | None = None) -> Run:
        """With its outcome, unless it has a final one already."""
        if self.outcome is not None and self.outcome.final:
            return self
        return replace(self, outcome=outcome, failure=failure, ended_at=at)

    def succeeded(self, adapter: Adapter, *, at: datetime) -> Run:
        return replace(self.ended(Outcome.SUCCEEDED, at=at), adapter=adapter)

    def next_candidate(self, offered: Iterable[Candidate]) -> Candidate | None:
        """The first that nobody refused yet."""
        return next((each for each in offered if each not in self.refused), None)


class Phase(StrEnum):
    """Where a run stands, for people."""

    DRAFT = "draft"
    LAUNCHING = "launching"
    BOOTING = "booting"
    PULLING = "pulling"
    PREPARING = "preparing"
    TRAINING = "training"
    EXPORTING = "exporting"
    VERIFYING = "verifying"
    RELEASING = "releasing"
    STOPPING = "stopping"
    RECOVERING = "recovering"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The latest word of a run's machine. Written often and never in a race that matters."""

    run_id: str
    attempt: int = 0
    phase: Phase = Phase.LAUNCHING
    heard_at: datetime | None = None
    """When the machine last spoke (event or heartbeat)."""
    step: int | None = None
    steps_total: int | None = None
    first_loss: float | None = None
    loss: float | None = None
    seconds_left: float | None = None

    @property
    def has_started(self) -> bool:
        """The trainer was started: its first step may be done before the word of it arrives."""
        return self.has_trained or self.phase is Phase.PREPARING

    @property
    def has_trained(self) -> bool:
        """From here on there may be output."""
        return self.step is not None or self.phase in {Phase.TRAINING, Phase.EXPORTING, Phase.VERIFYING}
