"""Verifying an adapter where it lies, and what follows."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from tensorant.contract import JobSpec
from tensorant.domain.errors import FailureClass, Storage
from tensorant.domain.machines import Disposition, Goal
from tensorant.domain.runs import Operation, Outcome
from tensorant.domain.steps import Next
from tensorant.services.verify import AdapterVerifier
from tests.support.archives import adapter_archive, archive_digest, manifest_of
from tests.support.fakes import MemoryObjectStore
from tests.support.fakes.files import etag
from tests.support.worlds import S3, World, step

PREFIX = "runs/run-1/attempt-1/"
ARCHIVE, MANIFEST, REPORT = (
    PREFIX + "adapter.zip",
    PREFIX + "adapter.manifest.json",
    PREFIX + "verification.json",
)


@pytest.fixture
def verifier(world: World) -> AdapterVerifier:
    return AdapterVerifier(world.store, world.storages, world.clock)


def beside(spec: JobSpec, archive: bytes) -> bytes:
    """The object beside an archive, as the trainer writes it last."""
    return json.dumps(manifest_of(spec, {}, archive=archive_digest(archive).model_dump())).encode()


def exported(world: World, archive: bytes | None = None) -> bytes:
    """Put the archive of the run, sound unless given, and what stands beside it."""
    spec = world.run.spec
    archive = adapter_archive(spec) if archive is None else archive
    world.storage.put(ARCHIVE, archive)
    world.storage.put(MANIFEST, beside(spec, archive))
    return archive


class ReadOnly(MemoryObjectStore):
    """Its owner has taken the right to write away."""

    def put(self, key: str, content: bytes | Iterable[bytes]) -> None:
        raise Storage("AccessDenied", f"{key} can't be written.")


def test_a_sound_adapter_is_the_runs_success_and_lets_its_machine_go(
    world: World, verifier: AdapterVerifier
) -> None:
    world.rented()
    archive = exported(world)

    answer = verifier.verify(step(attempt=1))

    assert answer == step(attempt=1, next=Next.RELEASE)
    run, machine = world.store.commits[-1]  # one transaction
    assert run.outcome is Outcome.SUCCEEDED
    assert (machine.goal, machine.disposition) == (Goal.GONE, Disposition.VERIFIED)
    assert world.run.adapter is not None
    assert (world.run.adapter.key, world.run.adapter.etag) == (ARCHIVE, etag(archive))
    assert world.run.adapter.report.archive == archive_digest(archive)


def test_the_verdict_is_left_beside_the_archive(world: World, verifier: AdapterVerifier) -> None:
    world.rented()
    exported(world)

    verifier.verify(step())

    assert json.loads(world.storage.objects[REPORT])["sound"] is True


def test_a_verdict_that_could_not_be_left_there_counts_all_the_same(
    world: World, verifier: AdapterVerifier
) -> None:
    world.rented()
    exported(world)
    read_only = ReadOnly(objects=world.storage.objects)
    world.storages.by_connection = {S3: read_only}

    assert verifier.verify(step()).next is Next.RELEASE
    assert world.run.outcome is Outcome.SUCCEEDED
    assert REPORT not in world.storage.objects


def test_an_unsound_adapter_is_kept_for_recovery(world: World, verifier: AdapterVerifier) -> None:
    world.rented()
    exported(world, b"not a zip")

    answer = verifier.verify(step())

    assert (answer.next, answer.attempt) == (Next.STOP, 1)
    assert world.run.outcome is Outcome.NEEDS_RECOVERY
    assert world.run.adapter is None
    assert world.run.failure is not None
    assert world.run.failure.failure_class is FailureClass.TRAINING
    assert world.run.failure.mend
    assert world.machine.goal is Goal.STOPPED


def test_an_adapter_of_another_job_is_unsound(world: World, verifier: AdapterVerifier) -> None:
    world.rented()
    other = world.run.spec.model_copy(update={"run_id": "run-2"})
    archive = adapter_archive(other)
    world.storage.put(ARCHIVE, archive)
    world.storage.put(MANIFEST, beside(other, archive))

    assert verifier.verify(step()).next is Next.STOP
    assert world.run.outcome is Outcome.NEEDS_RECOVERY


def test_an_archive_that_was_replaced_after_it_was_reported_is_unsound(
    world: World, verifier: AdapterVerifier
) -> None:
    world.rented()
    exported(world)
    world.storage.put(ARCHIVE, adapter_archive(world.run.spec, more={"notes.txt": b"another"}))

    assert verifier.verify(step()).next is Next.STOP
    assert world.run.outcome is Outcome.NEEDS_RECOVERY


@pytest.mark.parametrize("missing", [ARCHIVE, MANIFEST])
def test_half_an_export_is_unsound(world: World, verifier: AdapterVerifier, missing: str) -> None:
    world.rented()
    exported(world)
    del world.storage.objects[missing]

    assert verifier.verify(step()).next is Next.STOP
    assert world.run.failure is not None
    assert world.run.failure.code == ("archive_missing" if missing == ARCHIVE else "manifest_missing")


@pytest.mark.parametrize("text", [b"{}", b"no json", b"\xff", b"[]"])
def test_a_manifest_that_vouches_for_nothing_is_unsound(
    world: World, verifier: AdapterVerifier, text: bytes
) -> None:
    world.rented()
    exported(world)
    world.storage.put(MANIFEST, text)

    assert verifier.verify(step()).next is Next.STOP
    assert world.run.failure is not None
    assert world.run.failure.code == "manifest_missing"


def test_a_repeated_verification_changes_nothing(world: World, verifier: AdapterVerifier) -> None:
    world.rented()
    exported(world)
    verifier.verify(step())
    run, machine, told = world.run, world.machine, world.told()

    assert verifier.verify(step()).next is Next.RELEASE
    assert (world.run, world.machine, world.told()) == (run, machine, told)


def test_a_machine_that_may_go_already_is_released(world: World, verifier: AdapterVerifier) -> None:
    world.rented(goal=Goal.GONE, disposition=Disposition.DISCARDED)

    assert verifier.verify(step()).next is Next.RELEASE
    assert world.storage.objects == {}


@pytest.mark.parametrize("outcome", [Outcome.CANCELLED, Outcome.FAILED])
def test_a_final_outcome_is_left_as_it_is(world: World, verifier: AdapterVerifier, outcome: Outcome) -> None:
    world.rented(goal=Goal.STOPPED)
    world.change_run(outcome=outcome)
    exported(world)

    verifier.verify(step())

    assert world.run.outcome is outcome


def test_a_recovered_adapter_is_the_runs_success(world: World, verifier: AdapterVerifier) -> None:
    world.rented(goal=Goal.STOPPED)
    world.change_run(outcome=Outcome.NEEDS_RECOVERY)
    exported(world)

    answer = verifier.verify(step(operation=Operation.VERIFY_RECOVERED, number=2))

    assert answer.next is Next.RELEASE
    assert world.run.outcome is Outcome.SUCCEEDED
    assert world.machine.disposition is Disposition.VERIFIED


def test_an_unsound_recovery_changes_nothing(world: World, verifier: AdapterVerifier) -> None:
    world.rented(goal=Goal.STOPPED)
    world.change_run(outcome=Outcome.NEEDS_RECOVERY)
    exported(world, b"not a zip")
    run, machine, told = world.run, world.machine, world.told()

    answer = verifier.verify(step(operation=Operation.VERIFY_RECOVERED, number=2))

    assert answer.next is Next.END
    assert (world.run, world.machine, world.told()) == (run, machine, told)


def test_a_discard_in_between_wins(world: World, verifier: AdapterVerifier) -> None:
    world.rented()
    exported(world, b"not a zip")
    world.store.before_next_commit(
        lambda: world.change_machine(goal=Goal.GONE, disposition=Disposition.DISCARDED)
    )

    assert verifier.verify(step()).next is Next.RELEASE
    assert world.run.outcome is None
    assert world.machine.disposition is Disposition.DISCARDED


def test_a_discard_in_between_wins_over_a_sound_adapter_too(world: World, verifier: AdapterVerifier) -> None:
    world.rented()
    exported(world)
    world.store.before_next_commit(
        lambda: world.change_machine(goal=Goal.GONE, disposition=Disposition.DISCARDED)
    )

    assert verifier.verify(step()).next is Next.RELEASE
    assert world.machine.disposition is Disposition.DISCARDED
    assert "run_succeeded" not in world.told()


def test_a_heartbeat_in_between_does_not_lose_the_success(world: World, verifier: AdapterVerifier) -> None:
    world.rented()
    exported(world)
    world.store.before_next_commit(lambda: world.change_machine(reason="somebody wrote"))

    assert verifier.verify(step()).next is Next.RELEASE
    assert world.run.outcome is Outcome.SUCCEEDED


def test_trouble_with_the_storage_decides_nothing(world: World, verifier: AdapterVerifier) -> None:
    world.rented()
    exported(world)
    world.storage.trouble.append(Storage("storage_failed", "It did not answer."))

    with pytest.raises(Storage):
        verifier.verify(step())
    assert world.run.outcome is None
    assert world.machine.goal is Goal.RUN
