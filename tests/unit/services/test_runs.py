"""Reading runs: outcome, machine and cost as three facts; events, logs, adapter."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tensorant.contract import VerificationReport
from tensorant.domain.errors import Conflict
from tensorant.domain.machines import Disposition, Goal, MachineState, Seen
from tensorant.domain.runs import Adapter, Outcome, Phase, Progress
from tensorant.services.provider_events import ProviderEvents
from tensorant.services.runs import Adapters, RunReader
from tests.support.worlds import ACCOUNT, MEMBER, ORG, RUN, World, later, machine

ADAPTER = Adapter(key="runs/run-1/attempt-1/adapter.zip", etag='"e"', report=VerificationReport(sound=True))
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

    download = Adapters(world.store, world.storages).download(MEMBER, ORG, RUN)

    assert download.url == "memory://get/runs/run-1/attempt-1/adapter.zip?seconds=900"
    assert download.adapter == ADAPTER


def test_without_a_verified_adapter_there_is_nothing_to_download(world: World) -> None:
    world.drafted()

    with pytest.raises(Conflict) as caught:
        Adapters(world.store, world.storages).download(MEMBER, ORG, RUN)
    assert caught.value.code == "no_adapter"


# -- provider's events -------------------------------------------------------------------------------------


def test_an_event_wakes_the_run_whose_machine_it_is(world: World) -> None:
    rented = world.rented()
    world.store.wait_with(RUN, "token-1")
    events = ProviderEvents(world.store, world.workflow)

    assert events.instance_changed(ACCOUNT, "us-east-1", rented.instance_id or "")
    assert world.workflow.woken == ["token-1"]


@pytest.mark.parametrize(
    ("account_id", "region", "instance_id"),
    [
        ("999900001111", "us-east-1", None),
        (ACCOUNT, "eu-west-1", None),
        (ACCOUNT, "us-east-1", "i-of-somebody-else"),
    ],
)
def test_an_event_of_another_account_region_or_machine_wakes_nobody(
    world: World, account_id: str, region: str, instance_id: str | None
) -> None:
    rented = world.rented()
    world.store.wait_with(RUN, "token-1")
    events = ProviderEvents(world.store, world.workflow)

    assert not events.instance_changed(account_id, region, instance_id or rented.instance_id or "")
    assert world.workflow.woken == []
    assert world.store.last_signal(RUN) == 0
