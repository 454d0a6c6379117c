"""Verifying the adapter of a run where it lies, and what follows from the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from pydantic import ValidationError

from tensorant.contract import (
    ARCHIVE_NAME,
    MANIFEST_OBJECT,
    ArchiveDigest,
    Fault,
    FaultClass,
    Manifest,
    VerificationReport,
)
from tensorant.domain.deliveries import MAX_REPEATS, RefusedUpload
from tensorant.domain.errors import FailureClass, Storage
from tensorant.domain.failures import Failure
from tensorant.domain.machines import Goal, Machine, Seen
from tensorant.domain.runs import Adapter, Operation, Run
from tensorant.domain.steps import Next, Step
from tensorant.domain.verdicts import RECOVER
from tensorant.domain.waiting import patience
from tensorant.ports import Clock, ObjectFacts, ObjectStore, ObjectStores, Store
from tensorant.services.conclusions import SOURCE, give_up, succeed
from tensorant.services.conflicts import until_settled
from tensorant.services.facts import machine_fact
from tensorant.verification import Code, Expected, verify

REPORT_OBJECT = "verification.json"
MAX_MANIFEST_BYTES = 1_000_000


@dataclass(frozen=True)
class StoredArchive:
    """An archive in object storage, pinned to one ETag, as the verifier reads it."""

    storage: ObjectStore
    key: str
    facts: ObjectFacts

    @property
    def size(self) -> int:
        return self.facts.size

    def read(self, offset: int, length: int) -> bytes:
        return self.storage.read(self.key, offset, length, etag=self.facts.etag)

    def stream(self, offset: int, length: int) -> Iterator[bytes]:
        return self.storage.stream(self.key, offset, length, etag=self.facts.etag)


@dataclass(frozen=True)
class AdapterVerifier:
    """The workflow's step VerifyAdapter."""

    store: Store
    storages: ObjectStores
    clock: Clock

    def verify(self, step: Step) -> Step:
        """Verify the attempt's archive; a sound one is the run's success and lets its machine go.

        An archive that arrived damaged is asked for again, at most `MAX_REPEATS` times, and waited for. Any
        other unsound one leaves the machine to be stopped and the run in need of recovery, unless there is
        nothing in it. A run that has a final outcome is left as it is. Trouble with the storage raises.
        """
        signal = self.store.last_signal(
            step.run_id
        )  # first: one that comes while we look wakes the next wait
        run = self.store.run(step.run_id)
        step = replace(step, attempt=step.attempt or run.attempt, signal=signal)
        machine = self.store.machine(run.id, step.attempt)
        if machine.goal is Goal.GONE:
            return replace(step, next=Next.RELEASE)
        storage = self.storages.open(self.store.connection(run.organization_id, run.storage_connection_id))
        upload = _etag(storage.head(run.prefix(step.attempt) + MANIFEST_OBJECT))
        if step.operation is Operation.LAUNCH:
            machine = until_settled(lambda: self._begin(step, upload))
            if machine.delivery.has_refused(upload):
                return self._waiting(step)
        adapter = self._judge(run, step.attempt, storage)
        if adapter.report.sound:
            until_settled(lambda: self._succeed(run.id, step.attempt, adapter))
            return replace(step, next=Next.RELEASE)
        if step.operation is Operation.VERIFY_RECOVERED:
            return replace(step, next=Next.END)
        return self._unsound(step, upload, adapter.report)

    def _begin(self, step: Step, upload: str) -> Machine:
        """Record that the upload's verification begins: should it crash, the record tells."""
        machine = self.store.machine(step.run_id, step.attempt)
        if machine.delivery.verifying == upload:
            return machine
        begun = replace(machine, delivery=machine.delivery.begun(upload))
        self.store.commit(begun)
        return replace(begun, version=machine.version + 1)

    def _judge(self, run: Run, attempt: int, storage: ObjectStore) -> Adapter:
        prefix = run.prefix(attempt)
        key = prefix + ARCHIVE_NAME
        facts = storage.head(key)
        digest = _stated(storage.get(prefix + MANIFEST_OBJECT, limit=MAX_MANIFEST_BYTES))
        if facts is None or digest is None:
            report = _nothing("archive" if facts is None else "manifest")
        else:
            report = verify(
                StoredArchive(storage, key, facts),
                Expected(run_id=run.id, attempt=attempt, spec=run.spec, archive=digest),
            )
        with suppress(Storage):  # the verdict is in the record; the copy beside the archive is a courtesy
            storage.put(prefix + REPORT_OBJECT, report.model_dump_json(indent=2).encode())
        return Adapter(key=key, etag=_etag(facts), report=report)

    def _succeed(self, run_id: str, attempt: int, adapter: Adapter) -> None:
        run, machine = self.store.run(run_id), self.store.machine(run_id, attempt)
        if machine.goal is not Goal.GONE:
            succeed(run, machine, adapter, store=self.store, clock=self.clock)

    def _unsound(self, step: Step, upload: str, report: VerificationReport) -> Step:
        def decide() -> Goal:
            run, machine = self.store.run(step.run_id), self.store.machine(step.run_id, step.attempt)
            if machine.goal is not Goal.RUN or machine.delivery.has_refused(upload):
                return machine.goal
            if self._may_arrive(run, machine, report):
                self._ask_again(machine, upload, report)
                return machine.goal
            return give_up(
                replace(run, report=report),
                machine,
                failure_of(report),
                store=self.store,
                clock=self.clock,
                worthless=is_worthless(report),
            )

        goal = until_settled(decide)
        if goal is Goal.RUN:
            return self._waiting(step)
        return replace(step, next=Next.RELEASE if goal is Goal.GONE else Next.STOP)

    def _may_arrive(self, run: Run, machine: Machine, report: VerificationReport) -> bool:
        """Whether another upload would mend it, and there is a machine, time and a try left for one."""
        damaged = report.fault is not None and report.fault.fault_class is FaultClass.TRANSPORT
        in_time = run.deadline_at is not None and self.clock.now() < run.deadline_at
        alive = machine.seen in {Seen.PENDING, Seen.RUNNING}
        return damaged and in_time and alive and run.under_way and machine.delivery.may_repeat

    def _ask_again(self, machine: Machine, upload: str, report: VerificationReport) -> None:
        """The machine hears of it with its next heartbeat."""
        now = self.clock.now()
        code, message = (report.fault.code, report.fault.message) if report.fault else ("", "")
        refused = RefusedUpload(manifest_etag=upload, code=code, at=now)
        asked = replace(machine, delivery=machine.delivery.refusing(refused))
        told = f"{message} Another upload is asked for ({len(asked.delivery.refused)} of {MAX_REPEATS})."
        fact = machine_fact(machine, "upload_refused", told, at=now, source=SOURCE)
        self.store.commit(asked, facts=[fact])

    def _waiting(self, step: Step) -> Step:
        now = self.clock.now()
        deadline_at = self.store.run(step.run_id).deadline_at or now
        wait = patience(now, deadline_at=deadline_at, has_spoken=True)
        return replace(
            step,
            next=Next.AWAIT,
            heartbeat_seconds=wait.heartbeat_seconds,
            timeout_seconds=wait.timeout_seconds,
        )


FAILURE_CLASSES = {
    FaultClass.TRANSPORT: FailureClass.STORAGE,
    FaultClass.TRAINING: FailureClass.TRAINING,
    FaultClass.POLICY: FailureClass.TRAINING,
}

WORTHLESS = frozenset({Code.UNTRAINED, Code.ST_EMPTY})
"""Whole archives, proved by their hashes, that hold nothing: what is on the machine's disk is the same."""


def failure_of(report: VerificationReport) -> Failure:
    """What an unsound archive means for its run."""
    fault = report.fault
    if fault is None:
        raise ValueError("a sound archive is no failure")
    return Failure(
        failure_class=FAILURE_CLASSES[fault.fault_class],
        code=fault.code.lower(),
        message=f"The adapter archive is not sound: {fault.message}",
        mend=fault.mend or RECOVER,
    )


def is_worthless(report: VerificationReport) -> bool:
    """Whether nothing is lost with the machine that made the archive."""
    return report.fault is not None and report.fault.code in WORTHLESS


def _etag(facts: ObjectFacts | None) -> str:
    return facts.etag if facts else ""


def _stated(manifest: bytes | None) -> ArchiveDigest | None:
    """The size and hash that the object beside the archive states; None if it states none."""
    try:
        return Manifest.model_validate_json(manifest or b"").archive
    except ValidationError:
        return None


def _nothing(what: str) -> VerificationReport:
    fault = Fault(
        code=f"{what.upper()}_MISSING",
        fault_class=FaultClass.TRANSPORT,
        message=f"The {what} is not in storage, or can't be read.",
        mend=RECOVER,
    )
    return VerificationReport(sound=False, fault=fault)
