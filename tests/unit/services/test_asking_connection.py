"""Asking with a connection that somebody changes, removes or gives other credentials meanwhile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensorant.domain.errors import Conflict, ProviderFault
from tensorant.domain.steps import Next
from tensorant.services.asking import Asker
from tensorant.services.candidates import Choices
from tests.support.worlds import (
    ACCOUNT,
    AWS_SETTINGS,
    RUN,
    SECOND_SUBNET,
    World,
    aws_connection,
    later,
    step,
)

NO_ANSWER = ProviderFault("no_answer", "AWS did not answer.")


@pytest.fixture
def asker(world: World) -> Asker:
    choices = Choices(world.clock, "https://api.example/", "dep-1")
    return Asker(world.store, world.computes, world.mint, world.clock, choices)


def test_nothing_is_asked_with_a_connection_that_is_being_removed(world: World, asker: Asker) -> None:
    world.claimed()
    world.store.before_next_commit(
        lambda: world.store.commit(aws_connection(version=1, removed_at=later(seconds=1)))
    )

    assert asker.ask(step()).next is Next.END

    assert world.run.failure is not None
    assert world.run.failure.code == "connection_removed"
    assert world.store.machines(RUN) == []
    assert world.compute.asked("ask") == []


def test_a_connection_that_was_changed_meanwhile_is_read_again(world: World, asker: Asker) -> None:
    world.claimed()
    narrowed = replace(AWS_SETTINGS, subnet_ids=(SECOND_SUBNET,))
    world.store.before_next_commit(
        lambda: world.store.commit(aws_connection(version=1, settings=narrowed, account_id=ACCOUNT))
    )

    assert asker.ask(step()).next is Next.AWAIT
    assert world.machine.candidate.subnet_id == SECOND_SUBNET


def test_a_race_that_is_never_settled_is_repeated_by_the_workflow(world: World, asker: Asker) -> None:
    world.claimed()
    for _ in range(6):
        world.store.fail_next_commit(Conflict("changed_meanwhile", "Somebody was faster."))

    with pytest.raises(Conflict):
        asker.ask(step())
    assert world.run.outcome is None


@pytest.mark.parametrize(
    ("expire", "next_step"), [({"minutes": 149}, Next.END), ({"minutes": 150}, Next.AWAIT)]
)
def test_credentials_that_were_replaced_by_short_lived_ones_ask_for_nothing_new(
    world: World, asker: Asker, expire: dict[str, float], next_step: Next
) -> None:
    world.claimed()  # until two hours after noon
    world.store.commit(aws_connection(version=1, credentials_expire_at=later(**expire)))

    assert asker.ask(step()).next is next_step
    assert len(world.store.machines(RUN)) == (1 if next_step is Next.AWAIT else 0)


def test_an_open_ask_is_put_again_though_its_connection_was_removed(world: World, asker: Asker) -> None:
    """Only so can be known what it made."""
    world.claimed()
    world.compute.fail_next("ask", NO_ANSWER, acting=True)
    with pytest.raises(ProviderFault):
        asker.ask(step())
    world.store.commit(aws_connection(version=1, removed_at=later(seconds=1)))

    assert asker.ask(step()).next is Next.AWAIT
    assert len(world.compute.instances) == 1
