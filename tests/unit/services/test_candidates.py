"""What is asked for next, and what is passed over.

A limit of $1.0219 is just what a g5.xlarge costs with its disk: 1.006 + 0.0159.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tensorant.domain.errors import Capacity, Configuration, Deadline, Price, ProviderFault
from tensorant.domain.machines import Candidate, Goal, Machine
from tensorant.domain.runs import Run
from tensorant.services.candidates import Choice, Choices
from tests.support.worlds import (
    ACCOUNT,
    FIRST_SUBNET,
    G5,
    G6,
    IMAGE,
    QUOTE,
    SECOND_SUBNET,
    World,
    aws_connection,
    catalog,
    later,
    s3_connection,
)

G6E = "g6e.xlarge"
IN_G6 = (
    Candidate(instance_type=G6, subnet_id=FIRST_SUBNET),
    Candidate(instance_type=G6, subnet_id=SECOND_SUBNET),
)


@pytest.fixture
def choices(world: World) -> Choices:
    return Choices(world.clock, "https://api.example/", "dep-1")


def chosen(world: World, choices: Choices, run: Run, **connection_changes: Any) -> Choice:
    return choices.next(run, aws_connection(**connection_changes), catalog(), compute=world.compute)


def wanted(machine: Machine) -> tuple[str, str]:
    return machine.candidate.instance_type, machine.candidate.subnet_id


def test_the_claims_quote_holds_for_its_type(world: World, choices: Choices) -> None:
    choice = chosen(world, choices, world.claimed())

    assert wanted(choice.machine) == (G6, FIRST_SUBNET)
    assert choice.machine.quote == QUOTE
    assert (choice.machine.attempt, choice.machine.goal, choice.machine.account_id) == (1, Goal.RUN, ACCOUNT)
    assert world.compute.calls == []


@pytest.mark.parametrize(("passed", "asked"), [({"minutes": 15}, []), ({"minutes": 16}, [G6])])
def test_an_old_quote_is_renewed_before_another_machine_is_asked_for(
    world: World, choices: Choices, passed: dict[str, float], asked: list[str]
) -> None:
    run = world.claimed()
    world.compute.prices_per_hour[G6] = Decimal("0.9")
    world.clock.at = later(**passed)

    choice = chosen(world, choices, run)

    assert world.compute.asked("prices") == asked
    assert choice.machine.quote.compute_usd_per_hour == Decimal("0.9" if asked else "0.8048")


def test_a_type_whose_price_has_risen_meanwhile_is_not_asked_for_again(
    world: World, choices: Choices
) -> None:
    run = world.claimed()  # at two dollars an hour
    world.compute.prices_per_hour[G6] = Decimal("1.9842")
    world.clock.at = later(minutes=16)

    with pytest.raises(Price) as caught:
        chosen(world, choices, run.refusing(IN_G6[0]))
    assert caught.value.code == "price_above_limit"


def test_a_subnet_whose_zone_does_not_offer_the_type_is_not_asked(world: World, choices: Choices) -> None:
    # the catalog knows the types in us-east-1a alone
    zones = {FIRST_SUBNET: "us-east-1b", SECOND_SUBNET: "us-east-1a"}

    assert wanted(chosen(world, choices, world.claimed(), subnet_zones=zones).machine) == (G6, SECOND_SUBNET)


@pytest.mark.parametrize("price", [None, "1.0061"], ids=["unknown", "above the limit"])
def test_a_candidate_that_may_not_be_paid_is_passed_over(
    world: World, choices: Choices, price: str | None
) -> None:
    run = world.claimed(instance_types=(G6, G5, G6E), price_limit_usd_per_hour=Decimal("1.0219"))
    world.compute.prices_per_hour |= {G5: None if price is None else Decimal(price), G6E: Decimal("0.9")}

    choice = chosen(world, choices, run.refusing(IN_G6[0]).refusing(IN_G6[1]))

    assert wanted(choice.machine) == (G6E, FIRST_SUBNET)
    assert [(each.instance_type, each.subnet_id) for each in choice.run.refused[2:]] == [
        (G5, FIRST_SUBNET),
        (G5, SECOND_SUBNET),
    ]


def test_a_candidate_at_the_limit_is_taken(world: World, choices: Choices) -> None:
    run = world.claimed(instance_types=(G6, G5), price_limit_usd_per_hour=Decimal("1.0219"))
    world.compute.prices_per_hour[G5] = Decimal("1.006")

    choice = chosen(world, choices, run.refusing(IN_G6[0]).refusing(IN_G6[1]))

    assert choice.machine.quote.usd_per_hour == Decimal("1.0219")


@pytest.mark.parametrize(("price", "code"), [(None, "price_unknown"), ("1.0061", "price_above_limit")])
def test_if_only_such_are_left_the_price_is_the_reason(
    world: World, choices: Choices, price: str | None, code: str
) -> None:
    run = world.claimed(instance_types=(G6, G5), price_limit_usd_per_hour=Decimal("1.0219"))
    world.compute.prices_per_hour[G5] = None if price is None else Decimal(price)

    with pytest.raises(Price) as caught:
        chosen(world, choices, run.refusing(IN_G6[0]).refusing(IN_G6[1]))
    assert caught.value.code == code


def test_if_all_were_refused_capacity_is_the_reason(world: World, choices: Choices) -> None:
    with pytest.raises(Capacity) as caught:
        chosen(world, choices, world.claimed().refusing(IN_G6[0]).refusing(IN_G6[1]))
    assert caught.value.code == "no_candidate_left"


def test_a_price_that_could_not_be_read_decides_nothing(world: World, choices: Choices) -> None:
    run = world.claimed(instance_types=(G6, G5))
    world.compute.fail_next("prices", ProviderFault("no_answer", "None."))

    with pytest.raises(ProviderFault):
        chosen(world, choices, run.refusing(IN_G6[0]).refusing(IN_G6[1]))


@pytest.mark.parametrize("passed", [{"hours": 2}, {"hours": 3}])
def test_past_its_limit_a_run_asks_for_nothing(
    world: World, choices: Choices, passed: dict[str, float]
) -> None:
    run = world.claimed()
    world.clock.at = later(**passed)

    with pytest.raises(Deadline) as caught:
        chosen(world, choices, run)
    assert caught.value.mend


def test_up_to_its_limit_it_asks(world: World, choices: Choices) -> None:
    run = world.claimed()
    world.clock.at = later(minutes=119, seconds=59)

    assert chosen(world, choices, run).machine.asked_at == later(minutes=119, seconds=59)


def test_a_connection_that_was_never_checked_is_not_used(world: World, choices: Choices) -> None:
    with pytest.raises(Configuration) as caught:
        chosen(world, choices, world.claimed(), image=None)
    assert caught.value.code == "connection_not_checked"


def test_only_aws_is_asked(world: World, choices: Choices) -> None:
    with pytest.raises(Configuration) as caught:
        choices.next(world.claimed(), s3_connection(), None, compute=world.compute)
    assert caught.value.code == "not_aws"


def test_a_claims_quote_with_a_smaller_disk_does_not_hold(world: World, choices: Choices) -> None:
    # another image meanwhile: 200 + 30 + 50 GiB at $0.08 are 0.08 · 280 / 730 = $0.0307 an hour
    larger = replace(IMAGE, root_gib=200)

    quote = chosen(world, choices, world.claimed(), image=larger).machine.quote

    assert (quote.disk_gib, quote.usd_per_hour) == (280, Decimal("0.8355"))


def test_above_the_limit_with_a_larger_disk_it_is_not_asked_for(world: World, choices: Choices) -> None:
    run = world.claimed(price_limit_usd_per_hour=Decimal("0.8354"))

    with pytest.raises(Price) as caught:
        chosen(world, choices, run, image=replace(IMAGE, root_gib=200))
    assert caught.value.code == "price_above_limit"


def test_the_price_of_a_type_is_read_once_whatever_the_number_of_subnets(
    world: World, choices: Choices
) -> None:
    run = world.claimed(instance_types=(G5, G6E, G6), price_limit_usd_per_hour=Decimal("1.0218"))
    world.compute.prices_per_hour |= {G5: Decimal("1.006"), G6E: Decimal("1.861")}

    choice = chosen(world, choices, run)

    assert wanted(choice.machine) == (G6, FIRST_SUBNET)
    assert world.compute.asked("prices") == [G5, G6E]
