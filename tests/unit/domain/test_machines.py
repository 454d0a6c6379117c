"""A machine between its goal and what the provider says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tensorant.domain.errors import FailureClass
from tensorant.domain.failures import Failure
from tensorant.domain.machines import (
    Call,
    Candidate,
    Disposition,
    Goal,
    MachineState,
    Observation,
    Seen,
    next_call,
)
from tests.support.worlds import ACCOUNT, FIRST_SUBNET, NOON, later, machine

INSTANCE = "i-0123456789abcdef0"
LEASE_ENDS = later(minutes=5)

STOP, TERMINATE = Call.STOP, Call.TERMINATE
CALLS = {
    Goal.RUN: {},
    Goal.STOPPED: {Seen.RUNNING: STOP},
    Goal.GONE: {
        Seen.PENDING: TERMINATE,
        Seen.RUNNING: TERMINATE,
        Seen.STOPPING: TERMINATE,
        Seen.STOPPED: TERMINATE,
    },
}


@pytest.mark.parametrize("goal", Goal)
@pytest.mark.parametrize("seen", Seen)
def test_next_call_is_the_one_that_brings_the_machine_nearer(goal: Goal, seen: Seen) -> None:
    assert next_call(goal, seen) is CALLS[goal].get(seen)


# -- the goal ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("present", "wanted", "becomes"),
    [
        (Goal.RUN, Goal.RUN, Goal.RUN),
        (Goal.RUN, Goal.STOPPED, Goal.STOPPED),
        (Goal.RUN, Goal.GONE, Goal.GONE),
        (Goal.STOPPED, Goal.RUN, Goal.STOPPED),
        (Goal.STOPPED, Goal.STOPPED, Goal.STOPPED),
        (Goal.STOPPED, Goal.GONE, Goal.GONE),
        (Goal.GONE, Goal.RUN, Goal.GONE),
        (Goal.GONE, Goal.STOPPED, Goal.GONE),
        (Goal.GONE, Goal.GONE, Goal.GONE),
    ],
)
def test_a_goal_is_only_raised(present: Goal, wanted: Goal, becomes: Goal) -> None:
    assert machine(goal=present).raised(wanted, Disposition.DISCARDED).goal is becomes


def test_gone_needs_a_disposition() -> None:
    with pytest.raises(ValueError, match="disposition"):
        machine().raised(Goal.GONE)


def test_the_first_disposition_stays() -> None:
    verified = machine().raised(Goal.GONE, Disposition.VERIFIED)

    assert verified.raised(Goal.GONE, Disposition.DISCARDED).disposition is Disposition.VERIFIED


# -- observing ---------------------------------------------------------------------------------------------


def test_an_observation_tells_id_start_and_reason() -> None:
    seen = Observation(
        state=Seen.PENDING, instance_id=INSTANCE, started_at=later(seconds=2), reason="pending"
    )

    observed = machine().observed(seen, at=later(seconds=3))

    assert observed.instance_id == INSTANCE
    assert observed.seen is Seen.PENDING
    assert observed.seen_at == later(seconds=3)
    assert observed.started_at == later(seconds=2)
    assert observed.reason == "pending"
    assert not observed.closed


def test_the_recorded_id_is_kept() -> None:
    observed = machine(instance_id=INSTANCE).observed(
        Observation(state=Seen.RUNNING, instance_id="i-other"), at=NOON
    )

    assert observed.instance_id == INSTANCE


def test_the_end_of_the_running_period_is_when_it_was_first_seen() -> None:
    running = machine(instance_id=INSTANCE).observed(Observation(state=Seen.RUNNING), at=later(minutes=1))
    stopping = running.observed(Observation(state=Seen.STOPPING), at=later(minutes=30))
    stopped = stopping.observed(Observation(state=Seen.STOPPED), at=later(minutes=31))

    assert running.ran_until is None
    assert stopped.ran_until == later(minutes=30)
    assert stopped.confirmed_stopped_at == later(minutes=31)


def test_a_restart_begins_another_running_period() -> None:
    stopped = machine(instance_id=INSTANCE, started_at=NOON).observed(
        Observation(state=Seen.STOPPED), at=later(minutes=31)
    )

    restarted = stopped.observed(
        Observation(state=Seen.RUNNING, started_at=later(minutes=60)), at=later(minutes=61)
    )

    assert restarted.ran_until is None
    assert restarted.started_at == later(minutes=60)
    assert restarted.confirmed_stopped_at == later(minutes=31)


def test_the_providers_word_closes_a_machine() -> None:
    gone = machine(instance_id=INSTANCE).observed(Observation(state=Seen.GONE), at=later(minutes=9))

    assert gone.confirmed_gone_at == later(minutes=9)
    assert gone.closed


def missing(account_id: str | None = ACCOUNT) -> Observation:
    return Observation(state=Seen.MISSING, account_id=account_id)


@pytest.mark.parametrize("account_id", ["999900001111", None])
def test_not_found_by_another_account_proves_nothing(account_id: str | None) -> None:
    known = machine(instance_id=INSTANCE, seen=Seen.RUNNING, goal=Goal.GONE)

    assert known.observed(missing(account_id), at=later(days=30)) == known


def test_not_found_within_the_lease_proves_nothing() -> None:
    known = machine(instance_id=INSTANCE, seen=Seen.PENDING, goal=Goal.GONE)

    assert known.observed(missing(), at=LEASE_ENDS - timedelta(seconds=1)) == known


def test_not_found_by_its_own_account_after_the_lease_is_gone() -> None:
    known = machine(instance_id=INSTANCE, seen=Seen.RUNNING, goal=Goal.GONE)

    gone = known.observed(missing(), at=LEASE_ENDS)

    assert gone.seen is Seen.GONE
    assert gone.confirmed_gone_at == LEASE_ENDS
    assert gone.state is MachineState.RELEASED


def test_an_ask_without_an_id_never_existed_only_after_its_lease() -> None:
    unanswered = machine(goal=Goal.STOPPED)

    assert unanswered.observed(missing(), at=LEASE_ENDS - timedelta(seconds=1)) == unanswered
    assert unanswered.observed(missing(), at=LEASE_ENDS).state is MachineState.NEVER_EXISTED


def test_an_ask_that_is_still_wanted_is_not_closed_by_absence() -> None:
    wanted = machine(goal=Goal.RUN)

    assert wanted.observed(missing(), at=later(days=1)) == wanted


def test_asking_again_begins_another_lease() -> None:
    again = machine(goal=Goal.STOPPED).asked_again(at=later(minutes=4))

    assert not again.observed(missing(), at=later(minutes=8)).closed
    assert again.observed(missing(), at=later(minutes=9)).closed


# -- words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, MachineState.ASKED),
        ({"instance_id": INSTANCE, "seen": Seen.PENDING}, MachineState.STARTING),
        ({"instance_id": INSTANCE, "seen": Seen.RUNNING}, MachineState.RUNNING),
        ({"instance_id": INSTANCE, "seen": Seen.RUNNING, "goal": Goal.STOPPED}, MachineState.STOPPING),
        ({"instance_id": INSTANCE, "seen": Seen.STOPPED, "goal": Goal.STOPPED}, MachineState.RETAINED),
        ({"instance_id": INSTANCE, "seen": Seen.STOPPED, "goal": Goal.GONE}, MachineState.RELEASING),
        ({"instance_id": INSTANCE, "seen": Seen.GONE, "confirmed_gone_at": NOON}, MachineState.RELEASED),
        ({"confirmed_gone_at": NOON}, MachineState.NEVER_EXISTED),
    ],
)
def test_the_word_for_people_follows_from_goal_and_provider(
    changes: dict[str, object], state: MachineState
) -> None:
    assert machine(**changes).state is state


@pytest.mark.parametrize(
    ("changes", "reached"),
    [
        ({"goal": Goal.RUN, "seen": Seen.RUNNING}, False),
        ({"goal": Goal.STOPPED, "seen": Seen.RUNNING}, False),
        ({"goal": Goal.STOPPED, "seen": Seen.STOPPED}, True),
        ({"goal": Goal.STOPPED, "seen": Seen.GONE, "confirmed_gone_at": NOON}, True),
        ({"goal": Goal.GONE, "seen": Seen.STOPPED}, False),
        ({"goal": Goal.GONE, "seen": Seen.SHUTTING_DOWN}, False),
        ({"goal": Goal.GONE, "seen": Seen.GONE, "confirmed_gone_at": NOON}, True),
    ],
)
def test_a_goal_is_reached_by_the_providers_word(changes: dict[str, object], *, reached: bool) -> None:
    assert machine(instance_id=INSTANCE, **changes).at_goal is reached


def test_a_refused_ask_is_closed_with_nothing_to_keep() -> None:
    failure = Failure(
        failure_class=FailureClass.CAPACITY, code="InsufficientInstanceCapacity", message="none"
    )

    refused = machine().refused(failure, at=NOON)

    assert refused.state is MachineState.NEVER_EXISTED
    assert refused.disposition is Disposition.NOTHING_TO_KEEP
    assert refused.refusal == failure


def test_the_client_token_names_run_attempt_and_candidate() -> None:
    # sha256("g6.xlarge/subnet-0000000a") begins with these 16 digits
    assert (
        machine().client_token
        == "run-1-1-" + Candidate(instance_type="g6.xlarge", subnet_id=FIRST_SUBNET).digest
    )
    assert machine(attempt=2).client_token != machine().client_token
    other = Candidate(instance_type="g5.xlarge", subnet_id=FIRST_SUBNET)
    assert machine(candidate=other).client_token != machine().client_token


def test_the_client_token_of_a_real_run_fits_ec2s_64_characters() -> None:
    assert len(machine(run_id="run-9f86d081884c7d65", attempt=9999).client_token) <= 64
