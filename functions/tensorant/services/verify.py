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
from tensorant.domain.errors import FailureClass, Storage
from tensorant.domain.failures import Failure
from tensorant.domain.machines import Goal
from tensorant.domain.runs import Adapter, Operation, Run
from tensorant.domain.steps import Next, Step
from tensorant.domain.verdicts import RECOVER
from tensorant.ports import Clock, ObjectFacts, ObjectStore, ObjectStores, Store
from tensorant.services.conclusions import give_up, succeed
from tensorant.services.conflicts import until_settled
from tensorant.verification import Expected, verify

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

        An unsound one leaves the machine to be stopped and the run in need of recovery. A run that has a
        final outcome is left as it is.
        """
        run = self.store.run(step.run_id)
        attempt = step.attempt or run.attempt
        step = replace(step, attempt=attempt)
        machine = self.store.machine(run.id, attempt)
        if machine.goal is Goal.GONE:
            return replace(step, next=Next.RELEASE)
        adapter = self._judge(run, attempt)
        if adapter.report.sound:
            until_settled(lambda: self._succeed(run.id, attempt, adapter))
            return replace(step, next=Next.RELEASE)
        if step.operation is Operation.VERIFY_RECOVERED:
            return replace(step, next=Next.END)
        return self._unsound(step, adapter.report)

    def _judge(self, run: Run, attempt: int) -> Adapter:
        storage = self.storages.open(self.store.connection(run.organization_id, run.storage_connection_id))
        prefix = run.prefix(attempt)
        key = prefix + ARCHIVE_NAME
        facts = storage.head(key)
        digest = _stated(storage.get(prefix + MANIFEST_OBJECT, limit=MAX_MANIFEST_BYTES))
        if facts is None or digest is None:
            return Adapter(key=key, etag="", report=_nothing("archive" if facts is None else "manifest"))
        report = verify(
            StoredArchive(storage, key, facts),
            Expected(run_id=run.id, attempt=attempt, spec=run.spec, archive=digest),
        )
        with suppress(Storage):  # the verdict is in the record; the copy beside the archive is a courtesy
            storage.put(prefix + REPORT_OBJECT, report.model_dump_json(indent=2).encode())
        return Adapter(key=key, etag=facts.etag, report=report)

    def _succeed(self, run_id: str, attempt: int, adapter: Adapter) -> None:
        run, machine = self.store.run(run_id), self.store.machine(run_id, attempt)
        if machine.goal is not Goal.GONE:
            succeed(run, machine, adapter, store=self.store, clock=self.clock)

    def _unsound(self, step: Step, report: VerificationReport) -> Step:
        fault = report.fault
        failure = Failure(
            failure_class=FailureClass.TRAINING,
            code=fault.code.lower() if fault else "unsound",
            message=f"The adapter archive is not sound: {fault.message if fault else 'no verdict'}",
            mend=fault.mend if fault and fault.mend else RECOVER,
        )

        def decide() -> Goal:
            run, machine = self.store.run(step.run_id), self.store.machine(step.run_id, step.attempt)
            if machine.goal is not Goal.RUN:
                return machine.goal
            return give_up(run, machine, failure, store=self.store, clock=self.clock)

        goal = until_settled(decide)
        return replace(step, next=Next.RELEASE if goal is Goal.GONE else Next.STOP)


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
