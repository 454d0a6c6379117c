"""A world for tests: an organization with a checked AWS connection, storage, a project, a dataset, a draft.

Worked out by hand once, for all: g6.xlarge costs $0.8048; 65 GiB of AMI, 30 of image and 50 of workspace are
145 GiB, at $0.08 a GiB-month 0.08 · 145 / 730 = $0.0159; together $0.8207 an hour.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from tensorant.contract import BaseModelRef, DatasetRef, Event, EventType, LoraSpec, TrainingSpec
from tensorant.domain.connections import (
    AwsSettings,
    Catalog,
    Connection,
    ConnectionStatus,
    GpuType,
    ImageFacts,
    S3Settings,
)
from tensorant.domain.identity import Actor, Member, Organization, Role
from tensorant.domain.machines import Candidate, LaunchParameters, Machine, Observation, Seen
from tensorant.domain.projects import DatasetStatus, DatasetVersion, Project
from tensorant.domain.quotes import Quote
from tensorant.domain.runs import Draft, Operation, Phase, Progress, Run
from tensorant.domain.steps import Next, Step
from tensorant.domain.tokens import TokenMint
from tests.support.fakes import (
    FakeAccounts,
    FakeCompute,
    FakeComputes,
    FakeWorkers,
    FakeWorkflow,
    FixedClock,
    MemoryObjectStore,
    MemoryObjectStores,
    MemoryRunLogs,
    MemorySecrets,
    MemoryStaging,
    MemoryStore,
    SequentialIds,
)
from tests.support.fakes.small import NOON

ORG, PROJECT, DATASET, RUN = "org-1", "proj-1", "data-1", "run-1"
AWS, S3 = "conn-aws", "conn-s3"
ACCOUNT = "111122223333"
DEPLOYMENT = "dep-1"
OWNER, MEMBER, STRANGER = Actor("olga"), Actor("mia"), Actor("sam")
ADMIN = Actor("ada", platform_admin=True)
G6, G5 = "g6.xlarge", "g5.xlarge"
FIRST_SUBNET, SECOND_SUBNET = "subnet-0000000a", "subnet-0000000b"

AWS_SETTINGS = AwsSettings(
    region="us-east-1",
    image_id="ami-0123456789abcdef0",
    subnet_ids=(FIRST_SUBNET, SECOND_SUBNET),
    security_group_id="sg-0123456789abcdef0",
)
S3_SETTINGS = S3Settings(region="us-east-1", bucket="adapters", prefix="team")
IMAGE = ImageFacts(root_device="/dev/sda1", root_gib=65, other_devices=("/dev/sdf",))

QUOTE = Quote(
    instance_type=G6,
    compute_usd_per_hour=Decimal("0.8048"),
    disk_usd_per_hour=Decimal("0.0159"),
    disk_gib=145,
    priced_at=NOON,
)


def gpu_type(instance_type: str, price: str | None) -> GpuType:
    return GpuType(
        instance_type=instance_type,
        gpu="L4",
        gpu_memory_mib=22888,
        vcpus=4,
        memory_mib=16384,
        zones=("us-east-1a",),
        usd_per_hour=None if price is None else Decimal(price),
    )


def aws_connection(**changes: Any) -> Connection:
    connection = Connection(
        id=AWS,
        organization_id=ORG,
        name="our GPUs",
        settings=AWS_SETTINGS,
        status=ConnectionStatus.CONNECTED,
        created_at=NOON,
        created_by=OWNER.subject,
        checked_at=NOON,
        account_id=ACCOUNT,
        image=IMAGE,
    )
    return replace(connection, **changes)


def s3_connection(**changes: Any) -> Connection:
    connection = Connection(
        id=S3,
        organization_id=ORG,
        name="our bucket",
        settings=S3_SETTINGS,
        status=ConnectionStatus.CONNECTED,
        created_at=NOON,
        created_by=OWNER.subject,
    )
    return replace(connection, **changes)


def catalog(**changes: Any) -> Catalog:
    known = Catalog(
        connection_id=AWS,
        types=(gpu_type(G6, "0.8048"), gpu_type(G5, "1.006")),
        excluded={"g6.12xlarge": "it has 4 GPUs, and a run uses exactly one"},
        disk_usd_per_gib_month=Decimal("0.08"),
        priced_at=NOON,
    )
    return replace(known, **changes)


def draft(**changes: Any) -> Draft:
    wanted = Draft(
        name="first",
        project_id=PROJECT,
        connection_id=AWS,
        dataset_version_id=DATASET,
        base=BaseModelRef(repository="example/base", revision="0123456789abcdef"),
        lora=LoraSpec(rank=4, alpha=8),
        training=TrainingSpec(),
        instance_types=(G6,),
        price_limit_usd_per_hour=Decimal(2),
        time_limit_minutes=120,
        workspace_gib=50,
    )
    return replace(wanted, **changes)


def dataset_version(**changes: Any) -> DatasetVersion:
    version = DatasetVersion(
        id=DATASET,
        organization_id=ORG,
        project_id=PROJECT,
        name="chats",
        status=DatasetStatus.VALID,
        created_at=NOON,
        created_by=MEMBER.subject,
        sha256="d" * 64,
        rows=200,
        bytes=10_000,
    )
    return replace(version, **changes)


def run(draft_changes: dict[str, Any] | None = None, **changes: Any) -> Run:
    drafted = Run(
        id=RUN,
        organization_id=ORG,
        draft=draft(**(draft_changes or {})),
        created_at=NOON,
        created_by=MEMBER.subject,
        dataset=DatasetRef(sha256="d" * 64, rows=200, bytes=10_000),
        storage_connection_id=S3,
    )
    return replace(drafted, **changes)


def machine(**changes: Any) -> Machine:
    """The first attempt, asked for at noon and not seen yet."""
    asked = Machine(
        run_id=RUN,
        attempt=1,
        organization_id=ORG,
        connection_id=AWS,
        account_id=ACCOUNT,
        candidate=Candidate(instance_type=G6, subnet_id=FIRST_SUBNET),
        parameters=LaunchParameters(
            region="us-east-1",
            image_id=AWS_SETTINGS.image_id,
            root_device="/dev/sda1",
            other_devices=("/dev/sdf",),
            disk_gib=145,
            security_group_id=AWS_SETTINGS.security_group_id,
            key_name=None,
            instance_profile_arn=None,
            user_data="#cloud-config\ntoken: @one-time-token@\n",
            tags={
                "tensorant:managed": "true",
                "tensorant:deployment": DEPLOYMENT,
                "tensorant:run": RUN,
                "tensorant:attempt": "1",
            },
        ),
        quote=QUOTE,
        asked_at=NOON,
    )
    if "started_at" in changes:
        changes.setdefault("first_started_at", changes["started_at"])
    return replace(asked, **changes)


def step(**changes: Any) -> Step:
    first = Step(run_id=RUN, operation=Operation.LAUNCH, number=1, attempt=0, next=Next.END)
    return replace(first, **changes)


def event(kind: EventType, *, seq: int = 0, source: str = "trainer", **fields: Any) -> Event:
    return Event.model_validate({"source": source, "seq": seq, "at": NOON, "type": kind, **fields})


@dataclass
class World:
    """The ports, and what one organization has stored in them."""

    clock: FixedClock = field(default_factory=FixedClock)
    ids: SequentialIds = field(default_factory=SequentialIds)
    store: MemoryStore = field(default_factory=MemoryStore)
    compute: FakeCompute = field(default_factory=FakeCompute)
    storage: MemoryObjectStore = field(default_factory=MemoryObjectStore)
    staging: MemoryStaging = field(default_factory=MemoryStaging)
    workflow: FakeWorkflow = field(default_factory=FakeWorkflow)
    workers: FakeWorkers = field(default_factory=FakeWorkers)
    logs: MemoryRunLogs = field(default_factory=MemoryRunLogs)
    secrets: MemorySecrets = field(default_factory=MemorySecrets)
    accounts: FakeAccounts = field(default_factory=FakeAccounts)
    mint: TokenMint = field(default_factory=lambda: TokenMint(b"deployment-key"))

    def __post_init__(self) -> None:
        self.computes = FakeComputes({AWS: self.compute})
        self.storages = MemoryObjectStores({S3: self.storage})

    def settle(self) -> World:
        """Store the organization with everything that a run needs."""
        self.store.commit(
            Organization(id=ORG, name="Orchard", created_at=NOON),
            Member(organization_id=ORG, subject=OWNER.subject, role=Role.OWNER, created_at=NOON),
            Member(organization_id=ORG, subject=MEMBER.subject, role=Role.MEMBER, created_at=NOON),
            aws_connection(),
            s3_connection(),
            catalog(),
            Project(
                id=PROJECT,
                organization_id=ORG,
                name="support",
                storage_connection_id=S3,
                created_at=NOON,
                created_by=OWNER.subject,
            ),
            dataset_version(),
        )
        return self

    # -- how far a run has come --------------------------------------------------------------------------

    def drafted(self, **draft_changes: Any) -> Run:
        return self._stored(run(draft_changes))

    def launched(self, **draft_changes: Any) -> Run:
        return self._stored(run(draft_changes).launched(MEMBER.subject, at=self.clock.now()))

    def claimed(self, **draft_changes: Any) -> Run:
        """Its time limit of two hours has begun at noon."""
        return self._stored(self._claimed(**draft_changes))

    def asked(self, **machine_changes: Any) -> Machine:
        """With its first machine recorded; the provider knows nothing of it yet."""
        self.store.commit(self._claimed().asking(1), machine(**machine_changes))
        return self.store.machine(RUN, 1)

    def rented(self, state: Seen = Seen.RUNNING, **machine_changes: Any) -> Machine:
        """With its first machine at the provider, seen there in `state`."""
        asked = machine(**machine_changes)
        instance_id = self.compute.ask(asked, user_data="").instance_id or ""
        self.compute.set(instance_id, state)
        self.compute.calls.clear()
        seen = Observation(state=state, instance_id=instance_id, started_at=self.compute.starts_at)
        self.store.commit(self._claimed().asking(1), asked.observed(seen, at=self.clock.now()))
        return self.store.machine(RUN, 1)

    def _claimed(self, **draft_changes: Any) -> Run:
        now = self.clock.now()
        return run(draft_changes).launched(MEMBER.subject, at=now).claim(QUOTE, at=now)

    def _stored(self, drafted: Run) -> Run:
        self.store.commit(drafted)
        return self.store.run(drafted.id)

    def change_machine(self, attempt: int = 1, **changes: Any) -> Machine:
        """Somebody else writes the machine's record."""
        self.store.commit(replace(self.store.machine(RUN, attempt), **changes))
        return self.store.machine(RUN, attempt)

    def change_run(self, **changes: Any) -> Run:
        self.store.commit(replace(self.store.run(RUN), **changes))
        return self.store.run(RUN)

    def trained(self, attempt: int = 1) -> None:
        """The attempt's trainer has said that it has made a step."""
        self.store.save_progress(Progress(run_id=RUN, attempt=attempt, phase=Phase.TRAINING, step=1))

    # -- reading -----------------------------------------------------------------------------------------

    @property
    def run(self) -> Run:
        return self.store.run(RUN)

    @property
    def machine(self) -> Machine:
        return self.store.machine(RUN, max(1, self.run.attempt))

    def told(self) -> list[str]:
        """The kinds of the run's facts, in order."""
        return [fact.kind for fact in self.store.timeline(RUN)]


def later(**period: float) -> datetime:
    """A time after noon: `later(minutes=5)`."""
    return NOON + timedelta(**period)
