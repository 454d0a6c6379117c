"""The agent API as a machine meets it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tensorant import bootstrap
from tensorant.contract import Grants, HeartbeatReply, Session
from tensorant.domain.machines import Goal
from tensorant.handlers import agent
from tests.support.calls import Answer, Caller
from tests.support.worlds import RUN, S3, World

API = "/agent/v1"
NONCE, OTHER_NONCE = "n" * 32, "m" * 32
BOOTED = {"source": "host", "seq": 0, "at": "2026-08-01T12:01:00Z", "type": "booted"}


@pytest.fixture
def world(cloud: World) -> World:
    cloud.rented()
    return cloud


@pytest.fixture
def host(world: World, machines: Callable[..., Caller]) -> Caller:
    return machines(agent)


@pytest.fixture
def token(world: World) -> str:
    """The one in the machine's user data."""
    return bootstrap.token_mint().one_time(world.machine)


def opened(host: Caller, token: str, nonce: str = NONCE) -> Answer:
    return host.post(f"{API}/sessions", {"token": token, "nonce": nonce})


def session_token(host: Caller, token: str) -> str:
    return Session.model_validate(opened(host, token).body).session_token


def test_a_machine_opens_its_session(host: Caller, token: str) -> None:
    answer = opened(host, token)

    assert answer.status == 200
    session = Session.model_validate(answer.body)
    assert (session.job.run_id, session.job.attempt) == (RUN, 1)
    assert session.job.image == "registry.example/trainer@sha256:abc"


def test_the_same_nonce_may_ask_again(host: Caller, token: str) -> None:
    assert opened(host, token).body == opened(host, token).body


def test_another_nonce_is_a_conflict_that_leaves_a_trace(world: World, host: Caller, token: str) -> None:
    opened(host, token)

    answer = opened(host, token, OTHER_NONCE)

    assert (answer.status, answer.error["code"]) == (409, "token_bound")
    assert world.told()[-1] == "token_reused"


@pytest.mark.parametrize("wrong", ["", "nonsense", "tt1.run-1.1." + "0" * 64, "tt1.run-2.1." + "0" * 64])
def test_a_wrong_token_is_unauthorized(host: Caller, wrong: str) -> None:
    answer = opened(host, wrong)

    assert (answer.status, answer.error["code"]) == (401, "token_refused")
    assert answer.error["request_id"] == "request-2"


@pytest.mark.parametrize("nonce", ["short", "x" * 129])
def test_a_nonce_has_a_sensible_length(host: Caller, token: str, nonce: str) -> None:
    answer = opened(host, token, nonce)

    assert (answer.status, answer.error["field"]) == (422, "nonce")


def test_an_attempt_that_is_over_is_gone(world: World, host: Caller, token: str) -> None:
    session = session_token(host, token)
    world.change_machine(goal=Goal.STOPPED)

    assert opened(host, token).status == 410
    assert host.post(f"{API}/heartbeats", {}, token=session).status == 410


CALLS = [
    ("grants", {}),
    ("events", {"events": []}),
    ("heartbeats", {}),
    ("logs", {"source": "host", "seq": 0, "lines": []}),
]


@pytest.mark.parametrize(("route", "body"), CALLS)
def test_everything_else_needs_the_session(host: Caller, token: str, route: str, body: Any) -> None:
    opened(host, token)

    for wrong in (None, "nonsense", "ts1.run-1.1." + "0" * 64, token):  # a one-time token is none
        assert host.post(f"{API}/{route}", body, token=wrong).status == 401


def test_a_trainer_gets_its_job_and_its_rights(world: World, host: Caller, token: str) -> None:
    bootstrap.secrets().write(S3, {"access_key_id": "AKIA", "secret_access_key": "very-secret"})

    answer = host.post(f"{API}/grants", {}, token=session_token(host, token))

    grants = Grants.model_validate(answer.body)
    assert answer.status == 200
    assert grants.spec == world.run.spec
    assert "/team/runs/run-1/attempt-1/adapter.zip?" in grants.archive_put_url
    assert "X-Amz-Expires=3600" in grants.archive_put_url
    assert "very-secret" not in str(answer.body)


def test_events_are_accepted_and_counted_once(world: World, host: Caller, token: str) -> None:
    session = session_token(host, token)

    answers = [host.post(f"{API}/events", {"events": [BOOTED]}, token=session) for _ in range(2)]

    assert [(each.status, each.body["accepted"]) for each in answers] == [(202, 1), (202, 0)]
    assert world.told() == ["machine_connected", "booted"]


def test_a_newer_trainers_fields_are_passed_over(host: Caller, token: str) -> None:
    event = {**BOOTED, "colour": "green"}

    answer = host.post(f"{API}/events", {"events": [event], "more": 1}, token=session_token(host, token))

    assert answer.status == 202


def test_an_event_of_no_known_type_is_named(host: Caller, token: str) -> None:
    event = {**BOOTED, "type": "sang"}

    answer = host.post(f"{API}/events", {"events": [event]}, token=session_token(host, token))

    assert (answer.status, answer.error["field"]) == (422, "events[0].type")


def test_a_heartbeat_is_remembered(world: World, host: Caller, token: str) -> None:
    answer = host.post(f"{API}/heartbeats", {"step": 3, "loss": 1.25}, token=session_token(host, token))

    progress = world.store.progress(RUN)
    assert HeartbeatReply.model_validate(answer.body) == HeartbeatReply(stop=False)
    assert progress is not None
    assert (progress.step, progress.loss) == (3, 1.25)
    assert progress.heard_at is not None


def test_a_loss_that_is_no_number_does_not_silence_a_machine(host: Caller, token: str) -> None:
    session = session_token(host, token)

    assert host.post(f"{API}/heartbeats", '{"step": 3, "loss": NaN}', token=session).status == 200


def test_the_log_is_shipped(host: Caller, token: str) -> None:
    body = {"source": "trainer", "seq": 0, "lines": ["one", "two"]}

    answer = host.post(f"{API}/logs", body, token=session_token(host, token))

    assert (answer.status, answer.body) == (202, {"accepted": 2})
    lines = bootstrap.run_logs().read(RUN, 1, after=None, limit=10).lines
    assert [line.text for line in lines] == ["one", "two"]
