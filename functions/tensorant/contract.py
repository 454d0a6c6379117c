"""What crosses the wire between the control plane and a machine: job spec, events, grants, manifest.

The trainer and the verifier import this module too, so it needs the standard library and pydantic alone.
Readers tolerate fields they do not know, so that an older trainer understands a newer control plane.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

SCHEMA_VERSION: Final = 1

ARCHIVE_NAME = "adapter.zip"
MANIFEST_MEMBER = "manifest.json"
"""The manifest's name inside the archive."""
MANIFEST_OBJECT = "adapter.manifest.json"
"""The manifest's name beside the archive, written last: its presence says that the archive is whole."""

ModuleName = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*$", max_length=200)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Wire(BaseModel):
    """Base of all that is sent: frozen, and tolerant of unknown fields when read."""

    model_config = ConfigDict(frozen=True, extra="ignore")


# -- the job ---------------------------------------------------------------------------------------------


class BaseModelRef(Wire):
    """A base model by its hub repository and the exact revision (a commit, a tag or a branch)."""

    repository: str = Field(pattern=r"^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$", max_length=200)
    revision: str = Field(pattern=r"^\w[\w./-]*$", max_length=200)


class LoraSpec(Wire):
    """The shape of the adapter, in PEFT's words."""

    rank: int = Field(16, ge=1, le=256)
    alpha: int = Field(32, ge=1, le=1024)
    dropout: float = Field(0.0, ge=0.0, lt=1.0)
    target_modules: str | tuple[ModuleName, ...] = "all-linear"
    """`all-linear`, names, or a regular expression over full names."""
    use_rslora: bool = False
    use_dora: bool = False
    lora_bias: bool = False
    """Also train a bias on each `lora_B`."""
    modules_to_save: tuple[ModuleName, ...] = ()
    """Modules trained and saved whole beside the adapter, by name or the end of it."""

    @field_validator("target_modules")
    @classmethod
    def _is_a_pattern(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if isinstance(value, str):
            try:
                re.compile(value)
            except re.error as error:
                raise ValueError(f"not a regular expression: {error}") from error
        return value


class TrainingSpec(Wire):
    """The hyperparameters that a user may set; the rest are the trainer's defaults."""

    epochs: float = Field(1.0, ge=0.01, le=100)
    max_steps: int | None = Field(None, ge=2, le=1_000_000)
    learning_rate: float = Field(2e-4, ge=1e-8, le=1)
    batch_size: int = Field(8, ge=1, le=512)
    max_tokens: int = Field(2048, ge=16, le=131_072)
    warmup_ratio: float = Field(0.03, ge=0, lt=0.5)
    seed: int = Field(0, ge=0, lt=2**31)


class DatasetRef(Wire):
    """A dataset version as stored: JSON Lines in the normal form, not compressed."""

    sha256: Sha256
    rows: int = Field(ge=1)
    bytes: int = Field(ge=1)
    sample_rows: int | None = Field(None, ge=1)
    """Train on this many rows, chosen by the seed (a trial); None for all of them."""


class JobSpec(Wire):
    """All that a trainer must know to make the adapter of one run."""

    schema_version: Literal[1] = SCHEMA_VERSION
    run_id: str
    base: BaseModelRef
    lora: LoraSpec
    training: TrainingSpec
    dataset: DatasetRef
    archive_path: str = ARCHIVE_NAME
    """Where the archive lies under the data directory."""

    def sha256(self) -> str:
        """Hash of the canonical JSON; the manifest carries it, so an archive proves which job it answers.

        Fields that came later do not count while they are unset: jobs stored before keep their hash.
        """
        fields = self.model_dump(mode="json")
        for later in ("lora_bias", "modules_to_save"):
            if not fields["lora"][later]:
                del fields["lora"][later]
        canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


# -- the archive -----------------------------------------------------------------------------------------


class FileDigest(Wire):
    size: int = Field(ge=0)
    sha256: Sha256


class ArchiveDigest(FileDigest):
    """Size in bytes and hash of the whole `adapter.zip`."""


class TrainingMetrics(Wire):
    """Losses are means over the steps they name; None where a run had no such step."""

    first_loss: float | None = None
    last_loss: float | None = None
    trainable_parameters: int | None = None
    train_seconds: float | None = None


class AdapterNorms(Wire):
    """How far the training moved the model, as the trainer measured it in float32. Frobenius norms."""

    lora_a: float
    lora_b: float
    """Of all matrices of a kind together."""
    update: float
    """Of what the adapter adds to all weights together: scaling times B A. DoRA's magnitudes are left out."""
    largest_update: float
    largest_module: str
    """The module that changes most, and by how much."""
    largest_value: float
    """The largest absolute value of any saved number."""


class BaseModules(Wire):
    """The base model's layers that an adapter can cover, by name, with their shapes."""

    linear: dict[str, list[int]]
    """[outputs, inputs]."""
    embeddings: dict[str, list[int]] = {}
    """[tokens, width]."""
    output: str | None = None
    """The linear layer that makes tokens; `all-linear` leaves it out."""


class Manifest(Wire):
    """What an archive says of itself. As a member it has no `archive`; the object beside it has."""

    schema_version: Literal[1] = SCHEMA_VERSION
    run_id: str
    attempt: int = Field(ge=1)
    status: Literal["complete", "checkpoint"]
    stop_reason: Literal["finished", "max_steps", "early_stop", "deadline", "interrupted"]
    steps_done: int = Field(ge=0)
    steps_total: int = Field(ge=0)
    base: BaseModelRef
    spec_sha256: Sha256
    dataset_sha256: Sha256
    files: dict[str, FileDigest]
    """Every other member of the archive, by name."""
    metrics: TrainingMetrics = TrainingMetrics()
    norms: AdapterNorms | None = None
    base_modules: BaseModules | None = None
    """As the trainer found them; None for models with too many to list."""
    versions: dict[str, str] = {}
    archive: ArchiveDigest | None = None
    upload: int = Field(1, ge=1)
    """Which upload this is, beside the archive: a repeated one differs from the one that was refused."""


# -- the agent API ---------------------------------------------------------------------------------------


class TokenExchange(Wire):
    """First call of a machine: the one-time token of its user data, and a nonce it made and stored."""

    token: str
    nonce: str = Field(min_length=32, max_length=128)


class HostJob(Wire):
    """What the host needs to start the trainer."""

    run_id: str
    attempt: int
    image: str
    """By digest, for instance `registry/trainer@sha256:…`."""
    data_directory: str = "/var/lib/tensorant/data"
    deadline_at: datetime


class Session(Wire):
    """The answer to an exchange. The token authorizes the agent API alone and dies with the attempt."""

    session_token: str
    heartbeat_seconds: int
    job: HostJob


class GrantRequest(Wire):
    """Asked by the trainer at its start, and again when rights have expired."""

    archive_bytes: int | None = None


class Grants(Wire):
    """The job spec and short-lived rights: presigned URLs for this attempt's objects, and nothing else."""

    spec: JobSpec
    attempt: int
    dataset_url: str
    archive_put_url: str
    manifest_put_url: str
    expires_at: datetime


class EventType(StrEnum):
    """What a host or a trainer reports, in the order of a good run; the last group is exceptional."""

    BOOTED = "booted"
    PREFLIGHT_PASSED = "preflight_passed"
    IMAGE_PULLED = "image_pulled"
    STARTED = "started"
    DATASET = "dataset"
    STEP = "step"
    PACKED = "packed"
    UPLOADED = "uploaded"
    COMPLETED = "completed"

    WARNING = "warning"
    FAILED = "failed"
    """The trainer gave up and says why (`code`, `message`)."""
    PREFLIGHT_FAILED = "preflight_failed"
    """The host can't run the trainer; nothing was trained."""
    TRAINER_EXITED = "trainer_exited"
    """The host saw the trainer's container end without COMPLETED or FAILED (`exit_code`)."""


TERMINAL_EVENTS = frozenset(
    {EventType.COMPLETED, EventType.FAILED, EventType.PREFLIGHT_FAILED, EventType.TRAINER_EXITED}
)
"""Events that wake the workflow."""


class Event(Wire):
    """One thing that happened on a machine. `source` and `seq` number it: a repeat is recognized by them."""

    source: Literal["host", "trainer"]
    seq: int = Field(ge=0)
    at: datetime
    type: EventType
    message: str = Field("", max_length=2000)
    code: str | None = Field(None, max_length=64)
    """For failures: stable, from `TrainerExit` or the preflight."""
    exit_code: int | None = None
    step: int | None = None
    steps_total: int | None = None
    loss: float | None = None
    seconds_left: float | None = None


class EventBatch(Wire):
    events: tuple[Event, ...] = Field(max_length=100)


class Heartbeat(Wire):
    """Sent every `heartbeat_seconds`; the last step travels with it, so that progress needs no event."""

    step: int | None = None
    steps_total: int | None = None
    loss: float | None = None
    seconds_left: float | None = None


class HeartbeatReply(Wire):
    """`stop` asks the trainer to end: its attempt is no longer wanted."""

    stop: bool = False
    uploads_wanted: int = 1
    """How often the archive should have been uploaded by now: one more for each upload that arrived damaged."""


class LogChunk(Wire):
    """Lines of the machine's log, oldest first. `seq` numbers chunks of one source."""

    source: Literal["host", "trainer"]
    seq: int = Field(ge=0)
    lines: tuple[str, ...] = Field(max_length=1000)


class TrainerExit(StrEnum):
    """Why a trainer ended, as `Event.code`; `EXIT_CODES` gives the process's exit status."""

    SPEC = "spec"
    DATASET = "dataset"
    BASE_MODEL = "base_model"
    TEMPLATE = "template"
    OUT_OF_MEMORY = "out_of_memory"
    DIVERGED = "diverged"
    SELF_VERIFY = "self_verify"
    STORAGE = "storage"
    DISK = "disk"
    INTERRUPTED = "interrupted"
    DEADLINE = "deadline"
    BUG = "bug"


EXIT_CODES: dict[TrainerExit, int] = {
    TrainerExit.SPEC: 10,
    TrainerExit.DATASET: 11,
    TrainerExit.BASE_MODEL: 12,
    TrainerExit.TEMPLATE: 13,
    TrainerExit.OUT_OF_MEMORY: 20,
    TrainerExit.DIVERGED: 21,
    TrainerExit.SELF_VERIFY: 22,
    TrainerExit.STORAGE: 30,
    TrainerExit.DISK: 31,
    TrainerExit.INTERRUPTED: 75,
    TrainerExit.DEADLINE: 76,
    TrainerExit.BUG: 1,
}


# -- the verdict -----------------------------------------------------------------------------------------


class FaultClass(StrEnum):
    """Who can mend an unsound archive: another upload, another training, or a change of what was asked."""

    TRANSPORT = "transport"
    TRAINING = "training"
    POLICY = "policy"


class Fault(Wire):
    code: str
    fault_class: FaultClass
    message: str
    mend: str


class VerificationReport(Wire):
    """The verdict on one archive. `sound` exactly if `fault` is None."""

    schema_version: Literal[1] = SCHEMA_VERSION
    sound: bool
    fault: Fault | None = None
    checks: tuple[str, ...] = ()
    """The checks that passed, in order."""
    archive: ArchiveDigest | None = None
    files: dict[str, FileDigest] = {}
    """Size and hash of each member, as read from the archive."""
    tensors: int = 0
    parameters: int = 0
    modules: int = 0
    """How many of the base model's modules the adapter changes."""
    base_modules: int | None = None
    """How many linear modules the base model has, where the manifest lists them."""
    ranks: tuple[int, ...] = ()
    dtypes: tuple[str, ...] = ()
    variant: str = ""
    """LoRA, rsLoRA or DoRA, and what was trained beside it."""
    norms: AdapterNorms | None = None
    """As the trainer measured them."""
    manifest: Manifest | None = None
    """Without its list of the base model's modules."""
    warnings: tuple[str, ...] = ()
