"""Reading runs: outcome, machine and cost as three facts; events, logs, adapter."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tensorant.contract import VerificationReport
from tensorant.domain.errors import Conflict
from tensorant.domain.machines import Disposition, Goal, MachineState, Seen
from tensorant.domain.maintenance import ScheduledChange
from tensorant.domain.runs import Adapter, Outcome, Phase, Progress
from tensorant.services.converge import converge
from tensorant.services.runs import Adapters, RunReader
from tests.support.fakes.files import etag
from tests.support.worlds import MEMBER, ORG, RUN, World, later, machine

ARCHIVE = b"an archive"
ADAPTER = Adapter(
    key="runs/run-1/attempt-1/adapter.zip", etag=etag(ARCHIVE), report=VerificationReport(sound=True)
)
GONE = {"goal": Goal.GONE, "disposition": Disposition.VERIFIED}


@pytest.fixture
def reader(world: World) -> RunReader:
    return RunReader(world.store, world.logs, world.clock)


def test_a_draft_has_no_machine_and_costs_nothing(world: World, reader: RunReader) -> None:
    world.drafted()

    status = reader.show(MEMBER, ORG, RUN)

    assert (status.phase, status.machine, status.cost_usd) == (Phase.DRAFT, None, Decimal(0))


def test_a_launched_run_is_launching_until_its_machine_speaks(world: World, reader: RunReader) -> None:
    world.claimed()

    assert reader.show(MEMBER, ORG, RUN).phase is Phase.LAUNCHING

    world.store.save_progress(Progress(run_id=RUN, attempt=1, phase=Phase.TRAINING))
    assert reader.show(MEMBER, ORG, RUN).phase is Phase.TRAINING


@pytest.mark.parametrize(
    ("seen", "changes", "outcome", "phase"),
    [
        (Seen.RUNNING, GONE, Outcome.SUCCEEDED, Phase.RELEASING),
        (Seen.GONE, GONE, Outcome.SUCCEEDED, Phase.ENDED),
        (Seen.STOPPING, {"goal": Goal.STOPPED}, Outcome.NEEDS_RECOVERY, Phase.STOPPING),
        (Seen.STOPPED, {"goal": Goal.STOPPED}, Outcome.NEEDS_RECOVERY, Phase.ENDED),
    ],
)
def test_the_phase_says_what_is_left_to_do(
    world: World, reader: RunReader, seen: Seen, changes: dict[str, Any], outcome: Outcome, phase: Phase
) -> None:
    world.rented(seen, **changes)
    world.change_run(outcome=outcome)

    assert reader.show(MEMBER, ORG, RUN).phase is phase


def test_a_machine_that_its_owner_started_again_is_recovering(world: World, reader: RunReader) -> None:
    world.rented(Seen.RUNNING, goal=Goal.STOPPED, started_at=later(), confirmed_stopped_at=later(seconds=29))
    world.change_run(outcome=Outcome.NEEDS_RECOVERY)

    status = reader.show(MEMBER, ORG, RUN)

    assert status.phase is Phase.RECOVERING
    assert status.machine is not None
    assert status.machine.state is MachineState.RECOVERING


def test_a_success_whose_release_is_pending_has_succeeded(world: World, reader: RunReader) -> None:
    world.rented(Seen.SHUTTING_DOWN, **GONE)
    world.change_run(outcome=Outcome.SUCCEEDED)

    status = reader.show(MEMBER, ORG, RUN)

    assert status.run.outcome is Outcome.SUCCEEDED
    assert status.machine is not None
    assert status.machine.state is MachineState.RELEASING


def test_the_cost_counts_every_machine_of_the_run(world: World, reader: RunReader) -> None:
    # the first was refused and cost nothing; the second ran half an hour: 0.4024 + 0.00795
    world.asked(**GONE, confirmed_gone_at=later())
    world.store.commit(machine(attempt=2, instance_id="i-2", seen=Seen.RUNNING, started_at=later()))
    world.clock.forward(minutes=30)

    status = reader.show(MEMBER, ORG, RUN)

    assert status.cost_usd == Decimal("0.4104")
    assert status.machine is not None
    assert status.machine.attempt == 2


def test_the_log_is_that_of_the_latest_attempt(world: World, reader: RunReader) -> None:
    world.rented()
    world.logs.append(RUN, 1, "trainer", ["one", "two", "three"], at=later())

    first = reader.log(MEMBER, ORG, RUN, after=None, limit=2)
    rest = reader.log(MEMBER, ORG, RUN, after=first.next, limit=2)

    assert [line.text for line in first.lines] == ["one", "two"]
    assert [line.text for line in rest.lines] == ["three"]


def test_runs_and_their_timeline_are_read(world: World, reader: RunReader) -> None:
    world.rented()

    assert [each.id for each in reader.list(MEMBER, ORG)] == [RUN]
    assert list(reader.events(MEMBER, ORG, RUN)) == []


# -- adapters ----------------------------------------------------------------------------------------------


def test_a_verified_adapter_is_downloaded_from_the_storage(world: World) -> None:
    world.drafted()
    world.change_run(outcome=Outcome.SUCCEEDED, adapter=ADAPTER)
    world.storage.put(ADAPTER.key, ARCHIVE)

    download = Adapters(world.store, world.storages).download(MEMBER, ORG, RUN)

    assert download.url == "memory://get/runs/run-1/attempt-1/adapter.zip?seconds=900"
    assert download.adapter == ADAPTER


@pytest.mark.parametrize("present", [None, b"another archive"])
def test_an_object_that_is_no_longer_the_verified_one_is_not_handed_out(
    world: World, present: bytes | None
) -> None:
    world.drafted()
    world.change_run(outcome=Outcome.SUCCEEDED, adapter=ADAPTER)
    if present is not None:
        world.storage.put(ADAPTER.key, present)

    with pytest.raises(Conflict) as caught:
        Adapters(world.store, world.storages).download(MEMBER, ORG, RUN)
    assert caught.value.code == "adapter_changed"


def test_without_a_verified_adapter_there_is_nothing_to_download(world: World) -> None:
    world.drafted()

    with pytest.raises(Conflict) as caught:
        Adapters(world.store, world.storages).download(MEMBER, ORG, RUN)
    assert caught.value.code == "no_adapter"


def test_a_run_shows_what_is_scheduled_for_its_machine(world: World, reader: RunReader) -> None:
    rented = world.rented()
    change = ScheduledChange(
        code="AWS_EC2_INSTANCE_STOP_SCHEDULED",
        starts_at=later(days=1),
        instance_ids=(rented.instance_id or "",),
    )
    warning = change.warning(rented, at=later(hours=1))
    world.store.commit(facts=[warning])

    assert reader.show(MEMBER, ORG, RUN).warnings == (warning,)

    world.change_machine(**GONE, confirmed_gone_at=later(hours=2))
    assert reader.show(MEMBER, ORG, RUN).warnings == ()


def test_a_disk_that_outlives_its_machine_stays_a_warning(world: World, reader: RunReader) -> None:
    rented = world.rented(**GONE)
    world.compute.keep_volume(rented.instance_id or "")
    for _ in range(2):  # terminated, then seen to be gone
        converge(world.machine, compute=world.compute, store=world.store, clock=world.clock)
        world.compute.let_time_pass()

    status = reader.show(MEMBER, ORG, RUN)

    assert status.machine is not None
    assert status.machine.closed
    assert [each.kind for each in status.warnings] == ["machine_volume_kept"]
