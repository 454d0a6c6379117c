"""What machines ask and say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tensorant.contract import Event, EventBatch, EventType, Heartbeat, LogChunk, Session, TokenExchange
from tensorant.domain.deliveries import Delivery, RefusedUpload
from tensorant.domain.errors import Conflict, Ended, Unauthenticated
from tensorant.domain.machines import Disposition, Goal, Seen
from tensorant.domain.runs import Phase
from tensorant.services.agent import Agents
from tests.support.worlds import RUN, World, event, later

NONCE, OTHER_NONCE = "n" * 32, "m" * 32
IMAGE = "registry.example/trainer@sha256:abc"


@pytest.fixture
def agents(world: World) -> Agents:
    return Agents(
        world.store, world.storages, world.workflow, world.logs, world.mint, world.clock, trainer_image=IMAGE
    )


def exchange(world: World, agents: Agents, nonce: str = NONCE) -> Session:
    return agents.exchange(TokenExchange(token=world.mint.one_time(world.machine), nonce=nonce))


def batch(*events: Event) -> EventBatch:
    return EventBatch(events=events)


# -- sessions ----------------------------------------------------------------------------------------------


def test_the_first_exchange_binds_the_machine_and_says_what_to_run(world: World, agents: Agents) -> None:
    world.rented()

    session = exchange(world, agents)

    assert session.heartbeat_seconds == 60
    assert (session.job.run_id, session.job.attempt, session.job.image) == (RUN, 1, IMAGE)
    # two minutes before the limit, so that what there is can still be kept
    assert session.job.deadline_at == later(minutes=118)
    assert world.machine.nonce == NONCE
    assert world.told() == ["machine_connected"]


def test_a_lost_reply_is_asked_for_again_and_is_the_same(world: World, agents: Agents) -> None:
    world.rented()

    assert exchange(world, agents) == exchange(world, agents)
    assert world.told() == ["machine_connected"]


def test_another_nonce_is_refused_and_recorded(world: World, agents: Agents) -> None:
    world.rented()
    session = exchange(world, agents)

    with pytest.raises(Conflict) as caught:
        exchange(world, agents, OTHER_NONCE)

    assert caught.value.code == "token_bound"
    assert world.machine.nonce == NONCE
    assert world.told() == ["machine_connected", "token_reused"]
    assert agents.authenticate(session.session_token).run_id == RUN


def test_two_machines_with_one_token_at_once_get_one_session(world: World, agents: Agents) -> None:
    world.rented()
    world.store.before_next_commit(lambda: exchange(world, agents, OTHER_NONCE))

    with pytest.raises(Conflict):
        exchange(world, agents)

    assert world.machine.nonce == OTHER_NONCE


@pytest.mark.parametrize("token", ["", "nonsense", "tt1.run-1.1." + "0" * 64, "tt1.run-9.1." + "0" * 64])
def test_a_token_that_nobody_gave_out_is_refused(world: World, agents: Agents, token: str) -> None:
    world.rented()

    with pytest.raises(Unauthenticated):
        agents.exchange(TokenExchange(token=token, nonce=NONCE))
    assert world.machine.nonce is None


@pytest.mark.parametrize(
    "changes",
    [
        {"goal": Goal.STOPPED},
        {"goal": Goal.GONE, "disposition": Disposition.DISCARDED},
        {"confirmed_gone_at": later()},
    ],
)
def test_an_attempt_that_is_over_has_no_session(
    world: World, agents: Agents, changes: dict[str, Any]
) -> None:
    world.rented()
    token = exchange(world, agents).session_token
    world.change_machine(**changes)

    with pytest.raises(Ended):
        exchange(world, agents)
    with pytest.raises(Ended):
        agents.authenticate(token)


@pytest.mark.parametrize(
    "changes",
    [{"goal": Goal.STOPPED}, {"confirmed_gone_at": later()}],
)
def test_that_an_attempt_is_over_is_told_only_to_its_own_machine(
    world: World, agents: Agents, changes: dict[str, Any]
) -> None:
    world.rented()
    exchange(world, agents)
    world.change_machine(**changes)
    wrong = "0" * 64

    with pytest.raises(Unauthenticated):
        agents.exchange(TokenExchange(token=f"tt1.run-1.1.{wrong}", nonce=NONCE))
    with pytest.raises(Unauthenticated):
        agents.authenticate(f"ts1.run-1.1.{wrong}")


def test_a_session_token_shows_whose_machine_speaks(world: World, agents: Agents) -> None:
    world.rented()

    assert agents.authenticate(exchange(world, agents).session_token) == world.machine


@pytest.mark.parametrize("token", ["", "ts1.run-1.1." + "0" * 64, "Bearer x"])
def test_a_wrong_session_token_is_refused(world: World, agents: Agents, token: str) -> None:
    world.rented()
    exchange(world, agents)

    with pytest.raises(Unauthenticated):
        agents.authenticate(token)


def test_before_the_exchange_no_session_token_is_good(world: World, agents: Agents) -> None:
    world.rented()

    with pytest.raises(Unauthenticated):
        agents.authenticate(world.mint.session(world.machine, NONCE))


def test_a_one_time_token_is_no_session_token(world: World, agents: Agents) -> None:
    world.rented()
    exchange(world, agents)

    with pytest.raises(Unauthenticated):
        agents.authenticate(world.mint.one_time(world.machine))


# -- grants ------------------------------------------------------------------------------------------------


def test_grants_reach_this_attempts_objects_alone_for_an_hour(world: World, agents: Agents) -> None:
    grants = agents.grants(world.rented())

    assert grants.spec == world.run.spec
    assert grants.dataset_url == f"memory://get/projects/proj-1/datasets/data-1-{'d' * 64}.jsonl?seconds=3600"
    assert grants.archive_put_url == "memory://put/runs/run-1/attempt-1/adapter.zip?seconds=3600"
    assert grants.manifest_put_url == "memory://put/runs/run-1/attempt-1/adapter.manifest.json?seconds=3600"
    assert grants.expires_at == later(hours=1)


# -- events ------------------------------------------------------------------------------------------------


def test_events_become_facts_and_progress(world: World, agents: Agents) -> None:
    machine = world.rented()

    taken = agents.report(
        machine,
        batch(
            event(EventType.STARTED, seq=1, message="12 layers"),
            event(EventType.STEP, seq=2, step=10, steps_total=46, loss=3.5, seconds_left=40),
            event(EventType.STEP, seq=3, step=20, steps_total=46, loss=2.5),
        ),
    )

    progress = world.store.progress(RUN)
    assert taken == 3
    assert world.told() == ["started"]
    assert progress is not None
    assert (progress.phase, progress.step, progress.steps_total) == (Phase.TRAINING, 20, 46)
    assert (progress.first_loss, progress.loss, progress.seconds_left) == (3.5, 2.5, 40)
    assert progress.heard_at == world.clock.now()


def test_a_failure_is_on_the_timeline_with_its_code(world: World, agents: Agents) -> None:
    world.rented()

    agents.report(
        world.machine,
        batch(event(EventType.PREFLIGHT_FAILED, code="driver_too_old", message="The driver is 535.")),
    )

    assert [fact.message for fact in world.store.timeline(RUN)] == ["driver_too_old: The driver is 535."]


def test_an_event_counts_once_however_often_it_is_sent(world: World, agents: Agents) -> None:
    machine = world.rented()
    sent = batch(event(EventType.BOOTED, source="host"), event(EventType.STARTED))

    assert agents.report(machine, sent) == 2
    assert agents.report(machine, sent) == 0
    assert world.told() == ["booted", "started"]


def test_host_and_trainer_number_their_own_events(world: World, agents: Agents) -> None:
    machine = world.rented()

    taken = agents.report(machine, batch(event(EventType.BOOTED, source="host"), event(EventType.STARTED)))

    assert taken == 2


@pytest.mark.parametrize(
    "kind", [EventType.COMPLETED, EventType.FAILED, EventType.PREFLIGHT_FAILED, EventType.TRAINER_EXITED]
)
def test_a_last_word_wakes_the_workflow(world: World, agents: Agents, kind: EventType) -> None:
    machine = world.rented()
    world.store.wait_with(RUN, "token-1")

    agents.report(machine, batch(event(EventType.UPLOADED), event(kind, seq=1)))

    assert world.workflow.woken == ["token-1"]
    assert world.store.last_signal(RUN) == 1
    kept = world.store.terminal_event(RUN, 1)
    assert kept is not None
    assert kept.type is kind


def test_what_ended_an_attempt_does_not_change(world: World, agents: Agents) -> None:
    machine = world.rented()

    agents.report(machine, batch(event(EventType.FAILED, code="diverged")))
    agents.report(machine, batch(event(EventType.TRAINER_EXITED, source="host", exit_code=21)))

    kept = world.store.terminal_event(RUN, 1)
    assert kept is not None
    assert kept.code == "diverged"


def test_other_events_wake_nobody_but_show_that_the_machine_lives(world: World, agents: Agents) -> None:
    machine = world.rented()
    world.store.wait_with(RUN, "token-1")

    agents.report(machine, batch(event(EventType.BOOTED, source="host")))

    assert world.workflow.woken == []
    assert world.workflow.beaten == ["token-1"]


# -- heartbeats and logs -----------------------------------------------------------------------------------


def test_a_heartbeat_is_remembered_and_extends_the_wait(world: World, agents: Agents) -> None:
    machine = world.rented()
    world.store.wait_with(RUN, "token-1")
    agents.report(machine, batch(event(EventType.STEP, step=1, steps_total=46, loss=3.0)))
    world.workflow.beaten.clear()
    world.clock.forward(minutes=1)

    reply = agents.heartbeat(machine, Heartbeat(step=5, loss=2.0))

    progress = world.store.progress(RUN)
    assert not reply.stop
    assert world.workflow.beaten == ["token-1"]
    assert world.workflow.woken == []
    assert progress is not None
    assert progress.heard_at == later(minutes=1)
    assert (progress.step, progress.steps_total, progress.loss) == (5, 46, 2.0)
    assert (progress.phase, progress.first_loss) == (Phase.TRAINING, 3.0)


def test_a_heartbeat_hears_how_often_the_archive_should_have_been_uploaded(
    world: World, agents: Agents
) -> None:
    machine = world.rented()
    refused = RefusedUpload(manifest_etag="1", code="ZIP_CRC", at=later(minutes=1))

    assert agents.heartbeat(machine, Heartbeat()).uploads_wanted == 1
    asked = world.change_machine(delivery=Delivery(refused=(refused,)))
    assert agents.heartbeat(asked, Heartbeat()).uploads_wanted == 2


def test_an_empty_heartbeat_keeps_what_is_known(world: World, agents: Agents) -> None:
    machine = world.rented()
    agents.heartbeat(machine, Heartbeat(step=0, steps_total=46, loss=0.0, seconds_left=0.0))

    agents.heartbeat(machine, Heartbeat())

    progress = world.store.progress(RUN)
    assert progress is not None
    assert (progress.step, progress.steps_total, progress.loss, progress.seconds_left) == (0, 46, 0.0, 0.0)


def test_another_attempt_begins_its_own_progress(world: World, agents: Agents) -> None:
    machine = world.rented()
    agents.heartbeat(machine, Heartbeat(step=40, loss=1.0))

    agents.heartbeat(replace(machine, attempt=2), Heartbeat())

    progress = world.store.progress(RUN)
    assert progress is not None
    assert (progress.attempt, progress.step, progress.loss) == (2, None, None)


def test_log_lines_are_kept_by_attempt(world: World, agents: Agents) -> None:
    machine = world.rented(Seen.RUNNING)

    agents.log(machine, LogChunk(source="host", seq=0, lines=("one", "two")))

    page = world.logs.read(RUN, 1, after=None, limit=10)
    assert [(line.source, line.text) for line in page.lines] == [("host", "one"), ("host", "two")]
