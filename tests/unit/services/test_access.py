"""Another organization's things are not found, whoever asks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tensorant.domain.errors import Forbidden, NotFound
from tensorant.domain.identity import Actor, Member, Organization, Role
from tensorant.services.access import run_of
from tensorant.services.connections import ConnectionReader
from tensorant.services.datasets import Datasets
from tensorant.services.launch import Launches
from tensorant.services.organizations import Organizations
from tensorant.services.projects import Projects
from tensorant.services.runs import Adapters, RunReader
from tests.support.worlds import (
    ADMIN,
    AWS,
    DATASET,
    MEMBER,
    NOON,
    ORG,
    OWNER,
    PROJECT,
    RUN,
    S3,
    STRANGER,
    World,
)

OTHER = "org-other"
NEIGHBOUR = Actor("nora")


@pytest.fixture
def neighbours(world: World) -> World:
    """With another organization, and a run that is not theirs."""
    world.store.commit(
        Organization(id=OTHER, name="Others", created_at=NOON),
        Member(organization_id=OTHER, subject=NEIGHBOUR.subject, role=Role.OWNER, created_at=NOON),
    )
    world.drafted()
    return world


def test_a_run_is_found_by_its_members(neighbours: World) -> None:
    assert run_of(ORG, RUN, MEMBER, store=neighbours.store).id == RUN


@pytest.mark.parametrize(
    ("organization_id", "actor"), [(ORG, NEIGHBOUR), (OTHER, NEIGHBOUR), (OTHER, MEMBER), (ORG, ADMIN)]
)
def test_a_run_is_found_by_nobody_else(neighbours: World, organization_id: str, actor: Actor) -> None:
    with pytest.raises(NotFound):
        run_of(organization_id, RUN, actor, store=neighbours.store)


@pytest.mark.parametrize("organization_id", [ORG, OTHER])
def test_a_neighbour_finds_nothing_of_ours(neighbours: World, organization_id: str) -> None:
    store = neighbours.store
    reader = RunReader(store, neighbours.logs, neighbours.clock)
    datasets = Datasets(store, neighbours.staging, neighbours.workers, neighbours.clock, neighbours.ids)
    asks: list[Callable[[], object]] = [
        lambda: reader.show(NEIGHBOUR, organization_id, RUN),
        lambda: reader.events(NEIGHBOUR, organization_id, RUN),
        lambda: reader.log(NEIGHBOUR, organization_id, RUN, after=None, limit=1),
        lambda: Launches(store, neighbours.workflow, neighbours.clock).launch(
            NEIGHBOUR, organization_id, RUN
        ),
        lambda: Adapters(store, neighbours.storages).download(NEIGHBOUR, organization_id, RUN),
        lambda: ConnectionReader(store).show(NEIGHBOUR, organization_id, AWS),
        lambda: Projects(store, neighbours.clock, neighbours.ids).show(NEIGHBOUR, organization_id, PROJECT),
        lambda: Projects(store, neighbours.clock, neighbours.ids).create(
            NEIGHBOUR, organization_id, name="x", storage_connection_id=S3
        ),
        lambda: datasets.show(NEIGHBOUR, organization_id, DATASET),
        lambda: datasets.create(NEIGHBOUR, organization_id, PROJECT, name="x"),
    ]
    for ask in asks:
        with pytest.raises(NotFound):
            ask()


def test_only_a_platform_admin_makes_an_organization(world: World) -> None:
    organizations = Organizations(world.store, world.clock, world.ids)

    made = organizations.create(ADMIN, name="Orchid", owner="nora")

    assert [(each.organization_id, each.role) for each in organizations.memberships(NEIGHBOUR)] == [
        (made.id, Role.OWNER)
    ]
    with pytest.raises(Forbidden):
        organizations.create(OWNER, name="Orchid", owner="olga")


def test_a_person_sees_their_own_memberships(world: World) -> None:
    organizations = Organizations(world.store, world.clock, world.ids)

    assert [each.organization_id for each in organizations.memberships(MEMBER)] == [ORG]
    assert organizations.memberships(STRANGER) == []
