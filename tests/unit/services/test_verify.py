"""Verifying an adapter where it lies, and what follows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pytest

from tensorant.contract import JobSpec
from tensorant.domain.errors import FailureClass, Storage
from tensorant.domain.machines import Disposition, Goal, Seen
from tensorant.domain.runs import Operation, Outcome
from tensorant.domain.steps import Next
from tensorant.services.verify import AdapterVerifier
from tests.support.archives import adapter_archive, archive_digest, filled, lora_tensors, manifest_of
from tests.support.fakes import MemoryObjectStore
from tests.support.fakes.files import etag
from tests.support.worlds import RUN, S3, World, step

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


class Broken(MemoryObjectStore):
    """Reading an archive from it crashes."""

    def stream(self, key: str, offset: int, length: int, *, etag: str) -> Iterator[bytes]:
        raise RuntimeError(f"{key} at {offset}, {length} of {etag}")


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
    world.trained()
    exported(world, adapter_archive(world.run.spec, config={"r": 8}))

    answer = verifier.verify(step())

    assert (answer.next, answer.attempt) == (Next.STOP, 1)
    assert world.run.outcome is Outcome.NEEDS_RECOVERY
    assert world.run.adapter is None
    assert world.run.failure is not None
    assert (world.run.failure.failure_class, world.run.failure.code) == (FailureClass.TRAINING, "config_rank")
    assert world.run.failure.mend
    assert world.run.report is not None
    assert world.run.report.checks == ("zip", "manifest")
    assert world.machine.goal is Goal.STOPPED


def test_a_whole_archive_with_nothing_in_it_is_not_worth_its_machine(
    world: World, verifier: AdapterVerifier
) -> None:
    world.rented()
    world.trained()
    tensors = lora_tensors(rank=world.run.spec.lora.rank, b=0.0)
    exported(world, adapter_archive(world.run.spec, tensors=tensors))

    assert verifier.verify(step()).next is Next.RELEASE
    assert (world.run.outcome, world.run.failure and world.run.failure.code) == (Outcome.FAILED, "untrained")
    assert (world.machine.goal, world.machine.disposition) == (Goal.GONE, Disposition.NOTHING_TO_KEEP)


def test_a_half_trained_one_is(world: World, verifier: AdapterVerifier) -> None:
    world.rented()
    world.trained()
    spec = world.run.spec
    tensors = lora_tensors(rank=spec.lora.rank)
    name = next(name for name in tensors if "lora_B" in name)
    tensors[name] = filled("F32", tensors[name].shape, 0.0)
    exported(world, adapter_archive(spec, tensors=tensors))

    assert verifier.verify(step()).next is Next.STOP
    assert world.run.outcome is Outcome.NEEDS_RECOVERY


def test_a_policy_fault_is_kept_too(world: World, verifier: AdapterVerifier) -> None:
    world.rented()
    world.trained()
    exported(world, adapter_archive(world.run.spec, more={"training_args.bin": b"pickled"}))

    assert verifier.verify(step()).next is Next.STOP
    assert world.run.failure is not None
    assert world.run.failure.code == "zip_pickle"


# -- uploads that arrived damaged --------------------------------------------------------------------------


def uploaded_again(world: World, archive: bytes, number: int) -> None:
    """As the trainer does it: the same manifest, but for the upload's number."""
    sound = adapter_archive(world.run.spec)
    stated = json.loads(beside(world.run.spec, sound)) | {"upload": number}
    world.storage.put(ARCHIVE, archive)
    world.storage.put(MANIFEST, json.dumps(stated).encode())


def test_a_damaged_upload_keeps_the_machine_and_asks_for_another(
    world: World, verifier: AdapterVerifier
) -> None:
    world.rented()
    sound = adapter_archive(world.run.spec)
    uploaded_again(world, sound[:-10], 1)
    world.store.signal(RUN)

    answer = verifier.verify(step())

    # two hours are left, and the machine has spoken: five minutes of silence, a look every fifteen
    assert answer == step(next=Next.AWAIT, attempt=1, signal=1, heartbeat_seconds=300, timeout_seconds=901)
    assert world.run.outcome is None
    assert world.machine.goal is Goal.RUN
    assert world.machine.delivery.uploads_wanted == 2
    assert [upload.code for upload in world.machine.delivery.refused] == ["ARCHIVE_SIZE"]
    assert world.told()[-1] == "upload_refused"


def test_the_next_upload_may_succeed(world: World, verifier: AdapterVerifier) -> None:
    world.rented()
    sound = adapter_archive(world.run.spec)
    uploaded_again(world, sound[:-10], 1)
    verifier.verify(step())
    uploaded_again(world, sound, 2)

    assert verifier.verify(step()).next is Next.RELEASE
    assert world.run.outcome is Outcome.SUCCEEDED


def test_after_two_more_tries_it_is_kept(world: World, verifier: AdapterVerifier) -> None:
    world.rented()
    world.trained()
    damaged = adapter_archive(world.run.spec)[:-10]
    steps = []
    for number in (1, 2, 3):
        uploaded_again(world, damaged, number)
        steps.append(verifier.verify(step()).next)

    assert steps == [Next.AWAIT, Next.AWAIT, Next.STOP]
    assert world.run.outcome is Outcome.NEEDS_RECOVERY
    assert world.run.failure is not None
    assert (world.run.failure.failure_class, world.run.failure.code) == (FailureClass.STORAGE, "archive_size")
    assert world.machine.delivery.uploads_wanted == 3


def test_the_same_upload_is_refused_once_however_often_it_is_looked_at(
    world: World, verifier: AdapterVerifier
) -> None:
    world.rented()
    uploaded_again(world, b"not a zip", 1)
    verifier.verify(step())
    machine, told = world.machine, world.told()

    assert verifier.verify(step()).next is Next.AWAIT
    assert (world.machine, world.told()) == (machine, told)


@pytest.mark.parametrize("seen", [Seen.STOPPED, Seen.STOPPING])
def test_a_machine_that_stands_still_is_not_asked(
    world: World, verifier: AdapterVerifier, seen: Seen
) -> None:
    world.rented(seen)
    world.trained()
    uploaded_again(world, b"not a zip", 1)

    assert verifier.verify(step()).next is Next.STOP
    assert world.run.outcome is Outcome.NEEDS_RECOVERY


def test_past_the_limit_nothing_is_asked(world: World, verifier: AdapterVerifier) -> None:
    world.rented()
    world.trained()
    uploaded_again(world, b"not a zip", 1)
    world.clock.forward(hours=2)

    assert verifier.verify(step()).next is Next.STOP
    assert world.machine.delivery.refused == ()


def test_an_archive_of_another_job_is_asked_for_again(world: World, verifier: AdapterVerifier) -> None:
    world.rented()
    other = world.run.spec.model_copy(update={"run_id": "run-2"})
    archive = adapter_archive(other)
    world.storage.put(ARCHIVE, archive)
    world.storage.put(MANIFEST, beside(other, archive))

    assert verifier.verify(step()).next is Next.AWAIT
    assert [upload.code for upload in world.machine.delivery.refused] == ["MANIFEST_OTHER_RUN"]


def test_an_archive_that_was_replaced_after_it_was_reported_is_asked_for_again(
    world: World, verifier: AdapterVerifier
) -> None:
    world.rented()
    exported(world)
    world.storage.put(ARCHIVE, adapter_archive(world.run.spec, more={"vocab.txt": b"another"}))

    assert verifier.verify(step()).next is Next.AWAIT
    assert [upload.code for upload in world.machine.delivery.refused] == ["ARCHIVE_SIZE"]


@pytest.mark.parametrize("missing", [ARCHIVE, MANIFEST])
def test_half_an_export_is_asked_for_again(world: World, verifier: AdapterVerifier, missing: str) -> None:
    world.rented()
    exported(world)
    del world.storage.objects[missing]

    assert verifier.verify(step()).next is Next.AWAIT
    code = "ARCHIVE_MISSING" if missing == ARCHIVE else "MANIFEST_MISSING"
    assert [upload.code for upload in world.machine.delivery.refused] == [code]
    assert json.loads(world.storage.objects[REPORT])["fault"]["code"] == code


@pytest.mark.parametrize("text", [b"{}", b"no json", b"\xff", b"[]"])
def test_a_manifest_that_vouches_for_nothing_is_asked_for_again(
    world: World, verifier: AdapterVerifier, text: bytes
) -> None:
    world.rented()
    exported(world)
    world.storage.put(MANIFEST, text)

    assert verifier.verify(step()).next is Next.AWAIT
    assert [upload.code for upload in world.machine.delivery.refused] == ["MANIFEST_MISSING"]


def test_a_verification_that_begins_is_on_record_before_anything_can_crash(
    world: World, verifier: AdapterVerifier
) -> None:
    world.rented()
    exported(world)
    manifest = etag(world.storage.objects[MANIFEST])
    world.storages.by_connection = {S3: Broken(objects=world.storage.objects)}

    with pytest.raises(RuntimeError):
        verifier.verify(step())
    assert world.machine.delivery.verifying == manifest
    assert world.machine.goal is Goal.RUN
    assert world.run.outcome is None


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
