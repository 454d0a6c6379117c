"""Launching: recorded once, started once, checked again before anything is rented."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tensorant.domain.connections import ConnectionStatus
from tensorant.domain.errors import (
    Conflict,
    Credentials,
    FailureClass,
    NotFound,
    ProviderFault,
    TensorantError,
    Throttled,
)
from tensorant.domain.runs import Outcome
from tensorant.domain.steps import Next
from tensorant.services.launch import Launches, Validator
from tensorant.services.reviews import Reviews
from tests.support.worlds import (
    G5,
    G6,
    MEMBER,
    ORG,
    QUOTE,
    RUN,
    STRANGER,
    World,
    aws_connection,
    later,
    s3_connection,
    step,
)


@pytest.fixture
def launches(world: World) -> Launches:
    return Launches(world.store, world.workflow, world.clock)


@pytest.fixture
def validator(world: World) -> Validator:
    return Validator(world.store, world.computes, world.clock)


# -- the person's side -------------------------------------------------------------------------------------


def test_a_launch_is_recorded_before_its_execution_is_started(world: World, launches: Launches) -> None:
    world.drafted()
    world.workflow.trouble.append(ProviderFault("workflow_failed", "no answer"))

    with pytest.raises(ProviderFault):
        launches.launch(MEMBER, ORG, RUN)

    assert world.run.launched_at == world.clock.now()
    assert world.run.launched_by == MEMBER.subject
    assert world.told() == ["run_launched"]


def test_a_launch_that_was_recorded_and_not_started_is_started_by_the_next_call(
    world: World, launches: Launches
) -> None:
    world.drafted()
    world.workflow.trouble.append(ProviderFault("workflow_failed", "no answer"))
    with pytest.raises(ProviderFault):
        launches.launch(MEMBER, ORG, RUN)

    launches.launch(MEMBER, ORG, RUN)

    assert world.workflow.started == ["run-1-launch-1"]


def test_launching_twice_is_launching_once(world: World, launches: Launches) -> None:
    world.drafted()

    first = launches.launch(MEMBER, ORG, RUN)
    world.clock.forward(hours=1)
    second = launches.launch(MEMBER, ORG, RUN)

    assert first.launched_at == second.launched_at
    assert world.workflow.executions == {"run-1-launch-1"}
    assert world.run.executions == 1


def test_two_launches_at_once_make_one_execution(world: World, launches: Launches) -> None:
    world.drafted()
    world.store.before_next_commit(lambda: launches.launch(MEMBER, ORG, RUN))

    launches.launch(MEMBER, ORG, RUN)

    assert world.workflow.executions == {"run-1-launch-1"}
    assert world.run.executions == 1
    assert world.told() == ["run_launched"]


def test_a_run_that_has_ended_is_not_started_again(world: World, launches: Launches) -> None:
    world.launched()
    world.change_run(outcome=Outcome.FAILED)

    launches.launch(MEMBER, ORG, RUN)

    assert world.workflow.started == []


def test_a_stranger_finds_no_run(world: World, launches: Launches) -> None:
    world.drafted()

    with pytest.raises(NotFound):
        launches.launch(STRANGER, ORG, RUN)


# -- the workflow's side -----------------------------------------------------------------------------------


def test_a_claim_takes_the_run_with_the_present_quote_and_starts_its_limit(
    world: World, validator: Validator
) -> None:
    world.launched()
    world.clock.forward(minutes=1)

    answer = validator.claim(step())

    assert answer == step(next=Next.LAUNCH)
    assert world.run.claimed
    assert world.run.deadline_at == later(minutes=121)
    assert world.run.quote is not None
    assert world.run.quote.usd_per_hour == QUOTE.usd_per_hour == Decimal("0.8207")
    assert world.told() == ["run_validated"]


def test_a_repeated_claim_changes_nothing(world: World, validator: Validator) -> None:
    world.launched()
    validator.claim(step())
    claimed = world.run
    world.clock.forward(minutes=30)

    assert validator.claim(step()).next is Next.LAUNCH
    assert world.run == claimed


def test_two_claims_at_once_make_one(world: World, validator: Validator) -> None:
    world.launched()
    world.store.before_next_commit(lambda: validator.claim(step()))

    assert validator.claim(step()).next is Next.LAUNCH
    assert world.told() == ["run_validated"]


def test_a_run_that_has_ended_is_not_claimed(world: World, validator: Validator) -> None:
    world.launched()
    world.change_run(outcome=Outcome.CANCELLED)

    assert validator.claim(step()).next is Next.END
    assert not world.run.claimed
    assert world.compute.calls == []


@pytest.mark.parametrize(
    ("price", "disk", "code"),
    [
        ("1.9842", "0.08", "price_above_limit"),
        (None, "0.08", "price_unknown"),
        ("0.8048", None, "price_unknown"),
    ],
)
def test_a_price_above_the_limit_or_unknown_ends_the_run(
    world: World, validator: Validator, price: str | None, disk: str | None, code: str
) -> None:
    # 1.9842 + 0.0159 = 2.0001, a hundredth of a cent above the limit of two dollars
    world.launched()
    world.compute.prices_per_hour[G6] = None if price is None else Decimal(price)
    world.compute.disk_usd_per_gib_month = None if disk is None else Decimal(disk)

    answer = validator.claim(step())

    assert answer.next is Next.END
    assert world.run.outcome is Outcome.FAILED
    assert world.run.failure is not None
    assert (world.run.failure.failure_class, world.run.failure.code) == (FailureClass.PRICE, code)
    assert world.compute.asked("ask") == []


def test_a_price_at_the_limit_is_claimed(world: World, validator: Validator) -> None:
    world.launched()
    world.compute.prices_per_hour[G6] = Decimal("1.9841")

    assert validator.claim(step()).next is Next.LAUNCH


@pytest.mark.parametrize("error", [Throttled("t", "slow down"), ProviderFault("p", "no answer")])
def test_a_doubtful_answer_is_repeated_by_the_workflow(
    world: World, validator: Validator, error: TensorantError
) -> None:
    world.launched()
    world.compute.fail_next("prices", error)

    with pytest.raises(type(error)):
        validator.claim(step())

    assert world.run.outcome is None
    assert validator.claim(step()).next is Next.LAUNCH


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"status": ConnectionStatus.FAILED}, "connection_not_ready"),
        ({"status": ConnectionStatus.CHECKING, "checked_at": None}, "connection_not_ready"),
        ({"image": None}, "connection_not_checked"),
    ],
)
def test_a_connection_that_is_not_ready_ends_the_run(
    world: World, validator: Validator, changes: dict[str, Any], code: str
) -> None:
    world.launched()
    world.store.commit(aws_connection(version=1, **changes))

    assert validator.claim(step()).next is Next.END
    assert world.run.failure is not None
    assert world.run.failure.code == code
    assert world.run.failure.failure_class is FailureClass.CONFIGURATION
    assert world.run.failure.mend


@pytest.mark.parametrize("status", [ConnectionStatus.FAILED, ConnectionStatus.CHECKING])
def test_storage_that_is_not_ready_ends_the_run(
    world: World, validator: Validator, status: ConnectionStatus
) -> None:
    world.launched()
    world.store.commit(s3_connection(status=status, version=1))

    assert validator.claim(step()).next is Next.END
    assert world.run.failure is not None
    assert (world.run.failure.failure_class, world.run.failure.code) == (
        FailureClass.CONFIGURATION,
        "connection_not_ready",
    )
    assert world.compute.calls == []


def test_another_check_under_way_changes_nothing(world: World, validator: Validator) -> None:
    world.launched()
    world.store.commit(aws_connection(version=1, status=ConnectionStatus.CHECKING))

    assert validator.claim(step()).next is Next.LAUNCH


def test_lost_credentials_end_the_run_with_their_own_class(world: World, validator: Validator) -> None:
    world.launched()
    world.computes.trouble = Credentials("credentials_missing", "They are not stored.", mend="Save them.")

    assert validator.claim(step()).next is Next.END
    assert world.run.failure is not None
    assert world.run.failure.failure_class is FailureClass.CREDENTIALS


def test_all_acceptable_types_are_priced_at_once_and_the_first_affordable_one_is_claimed(
    world: World, validator: Validator
) -> None:
    # the limit is two dollars
    world.launched(instance_types=(G5, G6))
    world.compute.prices_per_hour[G5] = Decimal("1.9842")

    assert validator.claim(step()).next is Next.LAUNCH
    assert world.run.quote is not None
    assert world.run.quote.instance_type == G6
    assert world.compute.calls == [("prices", "g5.xlarge g6.xlarge")]


def test_if_no_type_is_affordable_the_first_ones_price_is_the_reason(
    world: World, validator: Validator
) -> None:
    world.launched(instance_types=(G5, G6), price_limit_usd_per_hour=Decimal("0.5"))

    validator.claim(step())

    assert world.run.failure is not None
    assert world.run.failure.code == "price_unknown"  # of g5.xlarge, which has none here


def test_a_price_that_rises_between_review_and_launch_stops_before_anything_is_asked_for(
    world: World, validator: Validator
) -> None:
    # the limit of two dollars is good for what the review quotes: 0.8048 + 0.0159
    world.drafted()
    reviewed = Reviews(world.store, world.computes, world.clock).review(MEMBER, ORG, RUN)
    Launches(world.store, world.workflow, world.clock).launch(MEMBER, ORG, RUN)
    world.compute.prices_per_hour[G6] = Decimal("1.9842")

    answer = validator.claim(step())

    assert (reviewed.within_limit, reviewed.problems) == (True, ())
    assert answer.next is Next.END
    assert world.run.failure is not None
    assert world.run.failure.code == "price_above_limit"
    assert world.compute.asked("ask") == []
    assert world.store.machines(RUN) == []


@pytest.mark.parametrize(
    ("expire", "next_step"),
    [({"minutes": 149, "seconds": 59}, Next.END), ({"minutes": 150}, Next.LAUNCH)],
)
def test_credentials_must_outlast_the_limit_by_half_an_hour(
    world: World, validator: Validator, expire: dict[str, float], next_step: Next
) -> None:
    world.launched()  # two hours
    world.store.commit(aws_connection(version=1, credentials_expire_at=later(**expire)))

    assert validator.claim(step()).next is next_step
    if next_step is Next.END:
        assert world.run.failure is not None
        assert (world.run.failure.code, world.run.failure.failure_class) == (
            "credentials_expire_early",
            FailureClass.CREDENTIALS,
        )
        assert world.run.failure.mend
        assert world.compute.calls == []


@pytest.mark.parametrize(
    ("expire", "next_step"),
    [({"minutes": 149, "seconds": 59}, Next.END), ({"minutes": 150}, Next.LAUNCH)],
)
def test_so_must_those_of_the_storage(
    world: World, validator: Validator, expire: dict[str, float], next_step: Next
) -> None:
    world.launched()  # two hours
    world.store.commit(s3_connection(version=1, credentials_expire_at=later(**expire)))

    assert validator.claim(step()).next is next_step
    if next_step is Next.END:
        assert world.run.failure is not None
        assert world.run.failure.code == "credentials_expire_early"
        assert "our bucket" in world.run.failure.message


def test_a_connection_that_was_removed_is_not_launched_on(world: World, validator: Validator) -> None:
    world.launched()
    world.store.commit(aws_connection(version=1, removed_at=later(minutes=1)))

    assert validator.claim(step()).next is Next.END
    assert world.run.failure is not None
    assert world.run.failure.code == "connection_removed"


def test_a_race_that_is_never_settled_is_a_conflict(world: World, launches: Launches) -> None:
    world.drafted()
    for _ in range(6):
        world.store.fail_next_commit(Conflict("changed_meanwhile", "Somebody was faster."))

    with pytest.raises(Conflict):
        launches.launch(MEMBER, ORG, RUN)
    assert launches.launch(MEMBER, ORG, RUN).launched_at is not None
