"""A connection is removed when nothing depends on it, and its credentials once nobody can need them."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant.domain.connections import Connection, ConnectionStatus, ManagedBy
from tensorant.domain.errors import Conflict, Forbidden, NotFound
from tensorant.domain.machines import Disposition, Goal, Seen
from tensorant.domain.runs import Outcome
from tensorant.services.drafts import Drafts
from tensorant.services.projects import Projects
from tensorant.services.removals import Purges, RemovedConnections
from tests.support.worlds import (
    ADMIN,
    AWS,
    MEMBER,
    NOON,
    ORG,
    OWNER,
    S3,
    STRANGER,
    World,
    aws_connection,
    draft,
    later,
    machine,
    s3_connection,
)

SECRET = {"access_key_id": "AKIA"}
UNBOUND = "conn-unbound"


@pytest.fixture
def removals(world: World) -> RemovedConnections:
    return RemovedConnections(world.store, world.clock)


@pytest.fixture
def purges(world: World) -> Purges:
    world.secrets.write(AWS, SECRET)
    world.secrets.write(S3, SECRET)
    return Purges(world.store, world.secrets, world.clock)


# -- the person's side -------------------------------------------------------------------------------------


def test_what_nothing_depends_on_is_removed(world: World, removals: RemovedConnections) -> None:
    world.drafted()

    removed = removals.remove(OWNER, ORG, AWS)

    assert (removed.status, removed.removed_at) == (ConnectionStatus.REMOVED, NOON)
    assert world.store.connection(ORG, AWS).removed
    with pytest.raises(NotFound):
        removals.remove(OWNER, ORG, AWS)


@pytest.mark.parametrize("state", ["launched", "asked", "running", "retained"])
def test_in_use_it_stays(world: World, removals: RemovedConnections, state: str) -> None:
    def retained() -> None:
        world.rented(Seen.STOPPED, goal=Goal.STOPPED)
        world.change_run(outcome=Outcome.NEEDS_RECOVERY)

    {"launched": world.launched, "asked": world.asked, "running": world.rented, "retained": retained}[state]()
    before = world.store.connection(ORG, AWS)

    with pytest.raises(Conflict) as caught:
        removals.remove(OWNER, ORG, AWS)

    assert caught.value.code == "connection_in_use"
    assert "run-1" in caught.value.message
    assert caught.value.mend
    assert world.store.connection(ORG, AWS) == before


def test_after_the_release_it_may_go(world: World, removals: RemovedConnections) -> None:
    world.rented(Seen.GONE, goal=Goal.GONE, disposition=Disposition.VERIFIED)
    world.change_run(outcome=Outcome.SUCCEEDED)

    assert removals.remove(OWNER, ORG, AWS).removed


def test_a_run_that_starts_meanwhile_is_not_overlooked(world: World, removals: RemovedConnections) -> None:
    def ask() -> None:
        world.asked()
        world.store.commit(world.store.connection(ORG, AWS))

    world.store.before_next_commit(ask)

    with pytest.raises(Conflict) as caught:
        removals.remove(OWNER, ORG, AWS)
    assert caught.value.code == "connection_in_use"


def test_a_run_that_ends_while_it_is_looked_for_leaves_its_machine_in_the_way(
    world: World, removals: RemovedConnections
) -> None:
    world.launched()
    read_runs, read_machines = world.store.runs_under_way, world.store.open_machines

    def end() -> None:
        if world.run.outcome is None:
            world.store.commit(machine(goal=Goal.STOPPED, seen=Seen.STOPPED, instance_id="i-1"))
            world.change_run(outcome=Outcome.NEEDS_RECOVERY)

    def runs() -> Any:
        found = read_runs()
        end()
        return found

    def machines() -> Any:
        found = read_machines()
        end()
        return found

    world.store.runs_under_way = runs  # type: ignore[method-assign]
    world.store.open_machines = machines  # type: ignore[method-assign]

    with pytest.raises(Conflict) as caught:
        removals.remove(OWNER, ORG, AWS)
    assert caught.value.code == "connection_in_use"


def test_storage_stays_with_its_project(world: World, removals: RemovedConnections) -> None:
    world.store.commit(s3_connection(id=UNBOUND))

    with pytest.raises(Conflict, match="the project support keeps its files there"):
        removals.remove(OWNER, ORG, S3)
    assert removals.remove(OWNER, ORG, UNBOUND).removed


def test_a_project_that_is_made_meanwhile_is_not_made_on_nothing(
    world: World, removals: RemovedConnections
) -> None:
    world.store.commit(s3_connection(id=UNBOUND))
    projects = Projects(world.store, world.clock, world.ids)
    world.store.before_next_commit(lambda: removals.remove(OWNER, ORG, UNBOUND))

    with pytest.raises(NotFound):
        projects.create(MEMBER, ORG, name="new", storage_connection_id=UNBOUND)
    assert [each.name for each in world.store.projects(ORG)] == ["support"]


def test_nothing_new_is_made_with_a_removed_connection(world: World, removals: RemovedConnections) -> None:
    removals.remove(OWNER, ORG, AWS)

    with pytest.raises(Conflict) as caught:
        Drafts(world.store, world.clock, world.ids).create(MEMBER, ORG, draft())
    assert (caught.value.code, caught.value.field) == ("connection_removed", "connection_id")


def test_only_its_keeper_removes_one(world: World, removals: RemovedConnections) -> None:
    world.store.commit(aws_connection(id="conn-shared", managed_by=ManagedBy.PLATFORM))

    with pytest.raises(Forbidden):
        removals.remove(MEMBER, ORG, AWS)
    with pytest.raises(Forbidden):
        removals.remove(OWNER, ORG, "conn-shared")
    for actor in (STRANGER, ADMIN):
        with pytest.raises(NotFound):
            removals.remove(actor, ORG, AWS)

    assert removals.remove(ADMIN, ORG, "conn-shared").removed


# -- the sweep's side --------------------------------------------------------------------------------------


def removed(world: World, connection_id: str = AWS) -> Connection:
    world.store.commit(world.store.connection(ORG, connection_id).remove(at=NOON))
    return world.store.connection(ORG, connection_id)


@pytest.mark.parametrize("connection_id", [AWS, S3])
def test_credentials_are_deleted_after_a_grace(world: World, purges: Purges, connection_id: str) -> None:
    connection = removed(world, connection_id)

    world.clock.forward(minutes=14, seconds=59)
    assert not purges.purge(connection)
    assert connection_id in world.secrets.secrets

    world.clock.forward(seconds=1)
    assert purges.purge(connection)
    assert connection_id not in world.secrets.secrets
    assert world.store.connection(ORG, connection_id).purged_at == later(minutes=15)
    assert list(world.store.removed_connections()) == []


def test_a_connection_that_stands_keeps_its_credentials(world: World, purges: Purges) -> None:
    world.clock.forward(days=1)

    assert not purges.purge(world.store.connection(ORG, AWS))
    assert AWS in world.secrets.secrets


def test_while_a_machine_is_open_its_credentials_are_kept(world: World, purges: Purges) -> None:
    connection = removed(world)
    world.store.commit(machine(goal=Goal.STOPPED, seen=Seen.STOPPED, instance_id="i-1"))
    world.clock.forward(days=1)

    assert not purges.purge(connection)
    assert AWS in world.secrets.secrets

    world.change_machine(confirmed_gone_at=later(days=1))
    assert purges.purge(connection)


def test_a_deletion_that_was_not_noted_is_repeated(world: World, purges: Purges) -> None:
    connection = removed(world)
    world.clock.forward(minutes=20)
    world.store.fail_next_commit(Conflict("record_failed", "The table did not answer."))
    with pytest.raises(Conflict):
        purges.purge(connection)

    assert purges.purge(connection)


def test_a_record_changed_meanwhile_is_read_again(world: World, purges: Purges) -> None:
    connection = removed(world)
    world.clock.forward(minutes=20)
    changed: dict[str, Any] = {"name": "renamed", "version": connection.version}
    world.store.before_next_commit(lambda: world.store.commit(aws_connection(**changed).remove(at=NOON)))

    assert purges.purge(connection)
    assert world.store.connection(ORG, AWS).name == "renamed"
