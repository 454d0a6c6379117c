from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tensorant.contract import EventType, Heartbeat, TrainerExit
from tensorant_trainer.agent import (
    AgentClient,
    AgentRefusedError,
    AgentUnavailableError,
    AttemptOverError,
)
from tensorant_trainer.errors import TrainerError
from tensorant_trainer.progress import Progress
from tensorant_trainer.redaction import Redactor
from tensorant_trainer.run_log import RunLog
from tensorant_trainer.session import SessionFile, read_session
from tensorant_trainer.stop import Stop
from tests.support.fake_agent import TOKEN, FakeAgent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EVENTS = "/agent/v1/events"
HEARTBEATS = "/agent/v1/heartbeats"
LOGS = "/agent/v1/logs"


class Run:
    """A trainer's voice, with the ears of the other side."""

    def __init__(self, agent: FakeAgent, token: str = TOKEN) -> None:
        self.agent = agent
        session = SessionFile(
            url=agent.url,
            session_token=token,
            heartbeat_seconds=60,
            deadline_at=datetime(2030, 1, 1, tzinfo=UTC),
            run_id="run-1",
            attempt=1,
        )
        redactor = Redactor(token)
        self.stop = Stop()
        self.log = RunLog(redactor)
        self.client = AgentClient(session)
        self.progress = Progress(
            self.client, stop=self.stop, run_log=self.log, redactor=redactor, heartbeat_seconds=60
        )

    def says(self, line: str) -> None:
        self.log.emit(logging.LogRecord("test", logging.INFO, __file__, 1, line, None, None))


@pytest.fixture
def run() -> Iterator[Run]:
    with FakeAgent() as agent:
        run = Run(agent)
        with run.client:
            yield run


def test_events_come_numbered_and_in_order(run: Run) -> None:
    with run.progress as progress:
        progress.event(EventType.STARTED)
        progress.event(EventType.DATASET, "2 rows")
        progress.event(EventType.FAILED, "why", code=TrainerExit.DATASET, exit_code=11)

    events = run.agent.events
    assert [(event.seq, event.type, event.message) for event in events] == [
        (0, EventType.STARTED, ""),
        (1, EventType.DATASET, "2 rows"),
        (2, EventType.FAILED, "why"),
    ]
    assert (events[2].code, events[2].exit_code, events[2].source) == ("dataset", 11, "trainer")


def test_an_event_that_did_not_arrive_is_sent_again(run: Run) -> None:
    run.agent.faults[EVENTS].append(502)

    with run.progress as progress:
        progress.event(EventType.COMPLETED)

    assert run.agent.types() == [EventType.COMPLETED]
    assert run.agent.calls.count(f"POST {EVENTS}") == 2


def test_what_the_api_refuses_is_left_out_and_the_rest_goes_on(run: Run) -> None:
    run.agent.faults[EVENTS].append(422)

    with run.progress as progress:
        progress.event(EventType.STARTED)
        assert run.agent.wait_until(lambda: f"POST {EVENTS}" in run.agent.calls, seconds=5)
        progress.event(EventType.COMPLETED)

    assert run.agent.types() == [EventType.COMPLETED]


def test_steps_become_few_events_and_the_last_is_always_one(run: Run) -> None:
    with run.progress as progress:
        for step in range(1, 101):
            progress.step(Heartbeat(step=step, steps_total=100, loss=2.0, seconds_left=100.0 - step))

    assert [event.step for event in run.agent.events] == [1, 100]
    assert run.agent.events[1].seconds_left == 0.0


def test_the_log_arrives_before_the_end_and_without_secrets(run: Run) -> None:
    with run.progress as progress:
        run.says(f"token {TOKEN}")
        run.says("GET https://bucket.example/key?X-Amz-Signature=c0ffee failed")
        progress.event(EventType.COMPLETED, "see https://bucket.example/key?X-Amz-Signature=c0ffee")

    text = "\n".join(run.agent.log)
    assert "token [hidden]" in text
    assert "GET https://bucket.example/key?[hidden] failed" in text
    assert run.agent.events[0].message == "see https://bucket.example/key?[hidden]"
    posts = [call for call in run.agent.calls if call != f"POST {HEARTBEATS}"]
    assert posts[-1] == f"POST {EVENTS}"


def test_a_refused_piece_of_log_does_not_hold_up_the_end(run: Run) -> None:
    run.agent.faults[LOGS].append(413)

    with run.progress as progress:
        run.says("too much")
        progress.event(EventType.COMPLETED)

    assert run.agent.log == []
    assert run.agent.types() == [EventType.COMPLETED]


def test_a_heartbeat_may_ask_to_stop(run: Run) -> None:
    run.agent.stopping = True

    with run.progress as progress:
        progress.event(EventType.COMPLETED)

    with pytest.raises(TrainerError, match="the control plane asked for it") as caught:
        run.stop.check()
    assert caught.value.code is TrainerExit.INTERRUPTED


def test_an_attempt_that_is_over_stops_the_run() -> None:
    with FakeAgent() as agent:
        agent.faults[HEARTBEATS].append(410)
        run = Run(agent)
        with run.client, run.progress as progress:
            progress.event(EventType.STARTED)

    with pytest.raises(TrainerError, match="this attempt is over") as caught:
        run.stop.check()
    assert caught.value.exit_code == 75
    assert agent.events == []


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, AttemptOverError),
        (410, AttemptOverError),
        (404, AgentRefusedError),
        (422, AgentRefusedError),
        (429, AgentUnavailableError),
        (500, AgentUnavailableError),
        (503, AgentUnavailableError),
    ],
)
def test_what_an_answer_means(status: int, error: type[TrainerError], run: Run) -> None:
    run.agent.faults["/agent/v1/grants"].append(status)

    with pytest.raises(error):
        run.client.ask_grants()


def test_a_token_the_api_does_not_know_ends_the_attempt(run: Run) -> None:
    other = Run(run.agent, token="another")
    with other.client, pytest.raises(AttemptOverError):
        other.client.send_heartbeat(Heartbeat())

    assert run.agent.unauthorized == [HEARTBEATS]


def test_a_missing_or_foreign_session_file_is_a_fault_of_the_spec(tmp_path: Path) -> None:
    foreign = tmp_path / "session.json"
    foreign.write_text('{"url": "http://127.0.0.1"}')

    for path in (tmp_path / "nothing.json", foreign):
        with pytest.raises(TrainerError) as caught:
            read_session(path)
        assert caught.value.exit_code == 10
