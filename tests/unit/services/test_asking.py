"""Asking a provider: recorded before, repeated identically, one candidate at a time."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tensorant.domain.errors import (
    Capacity,
    Configuration,
    Credentials,
    FailureClass,
    Permission,
    Price,
    ProviderError,
    ProviderFault,
    Quota,
    Throttled,
)
from tensorant.domain.machines import Disposition, Goal, MachineState, Seen
from tensorant.domain.runs import Operation, Outcome, Phase
from tensorant.domain.steps import Next
from tensorant.domain.tokens import PLACEHOLDER
from tensorant.services.asking import Asker
from tensorant.services.candidates import Choices
from tests.support.worlds import (
    ACCOUNT,
    FIRST_SUBNET,
    G5,
    G6,
    RUN,
    SECOND_SUBNET,
    World,
    later,
    step,
)

NO_ANSWER = ProviderFault("no_answer", "AWS did not answer.")
NONE_HERE = Capacity("InsufficientInstanceCapacity", "None in this zone.", mend="Try another.")


@pytest.fixture
def asker(world: World) -> Asker:
    choices = Choices(world.clock, "https://api.example/", "dep-1")
    return Asker(world.store, world.computes, world.mint, world.clock, choices)


def test_a_machine_is_asked_for_and_waited_for(world: World, asker: Asker) -> None:
    world.claimed()

    answer = asker.ask(step())

    assert answer == step(next=Next.AWAIT, attempt=1, heartbeat_seconds=600, timeout_seconds=901)
    assert world.machine.instance_id == "i-00000000000000001"
    assert world.machine.seen is Seen.PENDING
    assert world.told() == ["machine_asked", "machine_pending"]


def test_the_intent_is_stored_before_the_provider_is_called(world: World, asker: Asker) -> None:
    world.claimed()
    world.compute.fail_next("ask", NO_ANSWER)

    with pytest.raises(ProviderFault):
        asker.ask(step())

    assert world.compute.instances == {}
    assert world.run.attempt == 1
    assert world.machine.state is MachineState.ASKED
    assert world.machine.account_id == ACCOUNT
    assert world.machine.candidate.subnet_id == FIRST_SUBNET
    assert world.machine.parameters.disk_gib == 145


def test_nothing_is_asked_if_the_intent_could_not_be_stored(world: World, asker: Asker) -> None:
    world.claimed()
    world.store.fail_next_commit(ProviderFault("record_failed", "The table did not answer."))

    with pytest.raises(ProviderFault):
        asker.ask(step())

    assert world.compute.asked("ask") == []


def test_a_lost_answer_is_asked_again_and_finds_the_same_instance(world: World, asker: Asker) -> None:
    world.claimed()
    world.compute.fail_next("ask", NO_ANSWER, acting=True)
    with pytest.raises(ProviderFault):
        asker.ask(step())
    world.clock.forward(minutes=2)

    answer = asker.ask(step())

    assert (answer.next, answer.attempt) == (Next.AWAIT, 1)
    assert len(world.compute.instances) == 1
    assert len(set(world.compute.asked("ask"))) == 1
    assert world.machine.instance_id in world.compute.instances


def test_a_crash_after_the_answer_finds_the_same_instance(world: World, asker: Asker) -> None:
    world.claimed()
    world.store.before_next_commit(
        lambda: world.store.before_next_commit(
            lambda: world.store.fail_next_commit(ProviderFault("record_failed", "Crash."))
        )
    )
    # the first commit is the intent; the interference registered in it breaks the one that follows the ask
    with pytest.raises(ProviderFault):
        asker.ask(step())

    asker.ask(step())

    assert len(world.compute.instances) == 1
    assert world.run.attempt == 1


@pytest.mark.parametrize("error", [NO_ANSWER, Throttled("RequestLimitExceeded", "Slow down.")])
def test_a_doubtful_answer_is_raised_and_keeps_the_ask_open(
    world: World, asker: Asker, error: ProviderError
) -> None:
    world.claimed()
    world.compute.fail_next("ask", error)

    with pytest.raises(type(error)):
        asker.ask(step())

    assert world.run.outcome is None
    assert not world.machine.closed


def test_a_repeated_question_begins_another_lease_and_sends_the_same_words(
    world: World, asker: Asker
) -> None:
    world.claimed()
    world.compute.fail_next("ask", NO_ANSWER)
    with pytest.raises(ProviderFault):
        asker.ask(step())
    first = world.machine
    world.clock.forward(minutes=3)

    asker.ask(step())

    assert world.machine.asked_at == later(minutes=3)
    assert world.machine.parameters == first.parameters
    assert world.machine.client_token == first.client_token


def test_an_answered_question_is_not_put_again(world: World, asker: Asker) -> None:
    world.claimed()
    asker.ask(step())

    answer = asker.ask(step())

    assert (answer.next, answer.attempt) == (Next.AWAIT, 1)
    assert len(world.compute.asked("ask")) == 1


def test_want_of_capacity_takes_the_next_candidate(world: World, asker: Asker) -> None:
    world.claimed()
    world.compute.fail_next("ask", NONE_HERE)

    refused = asker.ask(step())
    answer = asker.ask(refused)

    assert refused.next is Next.LAUNCH
    assert (answer.next, answer.attempt) == (Next.AWAIT, 2)
    first, second = world.store.machines(RUN)
    assert first.state is MachineState.NEVER_EXISTED
    assert first.refusal is not None
    assert first.refusal.code == "InsufficientInstanceCapacity"
    assert second.candidate.subnet_id == SECOND_SUBNET
    assert second.instance_id is not None


def test_candidates_are_asked_over_subnets_and_types_each_with_a_token_of_its_own(
    world: World, asker: Asker
) -> None:
    world.claimed(instance_types=(G6, G5))
    world.compute.prices_per_hour[G5] = Decimal("1.006")
    for _ in range(3):
        world.compute.fail_next("ask", NONE_HERE)

    answer = step()
    for _ in range(4):
        answer = asker.ask(answer)

    machines = world.store.machines(RUN)
    assert [(each.candidate.instance_type, each.candidate.subnet_id) for each in machines] == [
        (G6, FIRST_SUBNET),
        (G6, SECOND_SUBNET),
        (G5, FIRST_SUBNET),
        (G5, SECOND_SUBNET),
    ]
    assert len(set(world.compute.asked("ask"))) == 4
    assert (answer.next, answer.attempt) == (Next.AWAIT, 4)
    assert [each.closed for each in machines] == [True, True, True, False]


def test_a_run_ends_when_no_candidate_is_left(world: World, asker: Asker) -> None:
    world.claimed()
    for _ in range(2):
        world.compute.fail_next("ask", NONE_HERE)

    answer = asker.ask(asker.ask(asker.ask(step())))

    assert answer.next is Next.END
    assert world.run.outcome is Outcome.FAILED
    assert world.run.failure is not None
    assert (world.run.failure.failure_class, world.run.failure.code) == (
        FailureClass.CAPACITY,
        "no_candidate_left",
    )
    assert all(machine.closed for machine in world.store.machines(RUN))


@pytest.mark.parametrize(
    "error",
    [
        Quota("VcpuLimitExceeded", "0 of 4 vCPUs."),
        Permission("UnauthorizedOperation", "Not allowed."),
        Configuration("InvalidAMIID.NotFound", "No such image."),
        Credentials("InvalidClientTokenId", "No such key."),
    ],
)
def test_a_definite_refusal_ends_the_run_with_its_class_and_keeps_nothing(
    world: World, asker: Asker, error: ProviderError
) -> None:
    world.claimed()
    world.compute.fail_next("ask", error)

    answer = asker.ask(step())

    assert answer.next is Next.END
    assert world.run.outcome is Outcome.FAILED
    assert world.run.failure is not None
    assert (world.run.failure.failure_class, world.run.failure.code) == (error.failure_class, error.code)
    assert world.machine.closed
    assert (world.machine.goal, world.machine.disposition) == (Goal.GONE, Disposition.NOTHING_TO_KEEP)


def test_another_type_is_priced_before_it_is_asked_for(world: World, asker: Asker) -> None:
    world.claimed(instance_types=(G6, G5))
    world.compute.prices_per_hour[G5] = Decimal("1.006")
    for _ in range(2):
        world.compute.fail_next("ask", NONE_HERE)

    asker.ask(asker.ask(asker.ask(step())))

    assert world.machine.candidate.instance_type == G5
    assert world.machine.quote.compute_usd_per_hour == Decimal("1.006")
    assert world.compute.asked("prices") == [G5]


def test_another_type_above_the_limit_is_not_asked_for(world: World, asker: Asker) -> None:
    world.claimed(instance_types=(G6, G5))
    world.compute.prices_per_hour[G5] = Decimal(3)
    for _ in range(2):
        world.compute.fail_next("ask", NONE_HERE)

    answer = asker.ask(asker.ask(asker.ask(step())))

    assert answer.next is Next.END
    assert world.run.failure is not None
    assert world.run.failure.failure_class is Price.failure_class
    assert len(world.compute.asked("ask")) == 2


def test_after_its_limit_nothing_is_asked(world: World, asker: Asker) -> None:
    world.claimed()
    world.clock.forward(hours=2)

    answer = asker.ask(step())

    assert answer.next is Next.END
    assert world.run.outcome is Outcome.FAILED
    assert world.run.failure is not None
    assert world.run.failure.failure_class is FailureClass.DEADLINE
    assert world.store.machines(RUN) == []
    assert world.compute.asked("ask") == []


def test_a_run_that_has_ended_asks_nothing(world: World, asker: Asker) -> None:
    world.claimed()
    world.change_run(outcome=Outcome.CANCELLED)

    answer = asker.ask(step())

    assert (answer.next, answer.attempt) == (Next.STOP, 0)
    assert world.store.machines(RUN) == []
    assert world.compute.calls == []


@pytest.mark.parametrize(
    ("changes", "next_step"),
    [
        ({"goal": Goal.STOPPED}, Next.STOP),
        ({"goal": Goal.GONE, "disposition": Disposition.DISCARDED}, Next.RELEASE),
    ],
)
def test_a_machine_that_is_no_longer_wanted_is_not_asked_for_again(
    world: World, asker: Asker, changes: dict[str, Any], next_step: Next
) -> None:
    world.asked(**changes)
    world.change_run(outcome=Outcome.CANCELLED)

    answer = asker.ask(step())

    assert (answer.next, answer.attempt) == (next_step, 1)
    assert world.compute.calls == []


def test_two_askers_at_once_make_one_machine(world: World, asker: Asker) -> None:
    world.claimed()
    world.store.before_next_commit(lambda: asker.ask(step()))

    asker.ask(step())

    assert len(world.store.machines(RUN)) == 1
    assert len(world.compute.instances) == 1


def test_only_the_machines_user_data_has_the_token(world: World, asker: Asker) -> None:
    world.claimed()

    asker.ask(step())

    (instance,) = world.compute.instances.values()
    token = world.mint.one_time(world.machine)
    assert PLACEHOLDER in world.machine.parameters.user_data
    assert token not in world.machine.parameters.user_data
    assert instance.user_data == world.machine.parameters.user_data.replace(PLACEHOLDER, token)
    assert "https://api.example/agent/v1" in instance.user_data


def test_the_host_is_given_what_is_left_of_the_limit(world: World, asker: Asker) -> None:
    world.claimed()
    world.clock.forward(minutes=20)

    asker.ask(step())

    # 120 minutes less 20
    assert "6000" in world.machine.parameters.user_data


def test_a_machine_is_tagged_for_its_deployment_run_and_attempt(world: World, asker: Asker) -> None:
    world.claimed()

    asker.ask(step())

    assert world.machine.parameters.tags == {
        "Name": "tensorant run-1",
        "tensorant:managed": "true",
        "tensorant:deployment": "dep-1",
        "tensorant:run": "run-1",
        "tensorant:attempt": "1",
    }


def test_people_see_that_the_machine_boots(world: World, asker: Asker) -> None:
    world.claimed()

    asker.ask(step(operation=Operation.LAUNCH))

    progress = world.store.progress(RUN)
    assert progress is not None
    assert (progress.phase, progress.attempt) == (Phase.BOOTING, 1)
