"""The record: one suite for the table and for the memory that stands in for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tensorant.adapters.dynamodb.store import DynamoStore
from tensorant.contract import EventType
from tensorant.domain.errors import Conflict, NotFound
from tensorant.domain.identity import Member, Organization, Role
from tensorant.domain.machines import Observation, Seen
from tensorant.domain.projects import DatasetContent, DatasetStatus, Project
from tensorant.domain.runs import Outcome, Phase, Progress
from tensorant.domain.timeline import Fact
from tensorant.ports import Store
from tests.support.fakes import MemoryStore
from tests.support.tables import create_table
from tests.support.worlds import (
    ACCOUNT,
    AWS,
    DATASET,
    NOON,
    ORG,
    PROJECT,
    RUN,
    S3,
    aws_connection,
    catalog,
    dataset_version,
    event,
    later,
    machine,
    run,
    s3_connection,
)

TABLE = "records"


@pytest.fixture(params=["memory", "dynamodb"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    make_client: Callable[[str], Any] = request.getfixturevalue("moto_client")
    client = make_client("dynamodb")
    create_table(client, TABLE)
    yield DynamoStore(client, TABLE)
    client.delete_table(TableName=TABLE)


def organization(organization_id: str = ORG) -> Organization:
    return Organization(id=organization_id, name="Orchard", created_at=NOON)


def member(subject: str, organization_id: str = ORG, role: Role = Role.MEMBER) -> Member:
    return Member(organization_id=organization_id, subject=subject, role=role, created_at=NOON)


def project(project_id: str = PROJECT, organization_id: str = ORG) -> Project:
    return Project(
        id=project_id,
        organization_id=organization_id,
        name="support",
        storage_connection_id=S3,
        created_at=NOON,
        created_by="olga",
    )


def fact(identifier: str, *, run_id: str = RUN, kind: str = "happened") -> Fact:
    return Fact(
        run_id=run_id, id=identifier, at=NOON, kind=kind, source="test", message="so it was", attempt=1
    )


# -- versions ----------------------------------------------------------------------------------------------


def test_what_was_committed_is_read_back_with_its_version(store: Store) -> None:
    store.commit(run())

    assert store.run(RUN) == run(version=1)


def test_each_write_adds_one_to_the_version(store: Store) -> None:
    store.commit(run())
    store.commit(replace(store.run(RUN), attempt=1))
    store.commit(replace(store.run(RUN), attempt=2))

    assert (store.run(RUN).version, store.run(RUN).attempt) == (3, 2)


def test_what_is_new_must_not_be_there(store: Store) -> None:
    store.commit(run())

    with pytest.raises(Conflict) as caught:
        store.commit(run({"name": "second"}))

    assert caught.value.code == "changed_meanwhile"
    assert store.run(RUN).draft.name == "first"


@pytest.mark.parametrize("version", [1, 3])
def test_what_is_changed_must_still_have_its_version(store: Store, version: int) -> None:
    store.commit(run())
    store.commit(store.run(RUN))

    with pytest.raises(Conflict) as caught:
        store.commit(run(version=version, attempt=9))

    assert caught.value.code == "changed_meanwhile"
    assert store.run(RUN).attempt == 0


def test_what_is_changed_must_be_there(store: Store) -> None:
    with pytest.raises(Conflict):
        store.commit(run(version=1))


def test_a_commit_is_all_or_nothing(store: Store) -> None:
    store.commit(machine())

    with pytest.raises(Conflict):
        store.commit(run(), machine(), facts=[fact("one")])

    with pytest.raises(NotFound):
        store.run(RUN)
    assert list(store.timeline(RUN)) == []


def test_what_is_only_read_must_still_have_its_version(store: Store) -> None:
    store.commit(aws_connection())
    read = store.connection(ORG, AWS)
    store.commit(read.remove(at=NOON))

    with pytest.raises(Conflict) as caught:
        store.commit(run(), unchanged=[read])

    assert caught.value.code == "changed_meanwhile"
    with pytest.raises(NotFound):
        store.run(RUN)


def test_what_is_only_read_is_not_written(store: Store) -> None:
    store.commit(aws_connection())

    store.commit(run(), unchanged=[store.connection(ORG, AWS)])

    assert store.run(RUN).version == 1
    assert store.connection(ORG, AWS).version == 1


def test_of_two_writers_one_wins(store: Store) -> None:
    store.commit(machine())
    first, second = store.machine(RUN, 1), store.machine(RUN, 1)

    store.commit(first.bound("n" * 32))
    with pytest.raises(Conflict):
        store.commit(second.bound("m" * 32))

    assert store.machine(RUN, 1).nonce == "n" * 32


# -- facts -------------------------------------------------------------------------------------------------


def test_a_facts_id_is_new_in_its_run(store: Store) -> None:
    store.commit(facts=[fact("one")])
    store.commit(facts=[fact("one", run_id="run-2")])

    with pytest.raises(Conflict) as caught:
        store.commit(run(), facts=[fact("two"), fact("one", kind="again")])

    assert caught.value.code == "changed_meanwhile"
    assert store.timeline(RUN) == [fact("one")]
    with pytest.raises(NotFound):
        store.run(RUN)


def test_the_timeline_is_in_the_order_of_storing(store: Store) -> None:
    store.commit(facts=[fact("z"), fact("b")])
    store.commit(facts=[fact("a")])
    store.commit(facts=[fact("y", run_id="run-2")])

    assert [each.id for each in store.timeline(RUN)] == ["z", "b", "a"]


# -- reading -----------------------------------------------------------------------------------------------


def test_what_is_not_there_is_not_found(store: Store) -> None:
    for read in (
        lambda: store.organization(ORG),
        lambda: store.connection(ORG, AWS),
        lambda: store.project(ORG, PROJECT),
        lambda: store.dataset_version(ORG, DATASET),
        lambda: store.run(RUN),
        lambda: store.machine(RUN, 1),
    ):
        with pytest.raises(NotFound):
            read()
    assert store.member(ORG, "mia") is None
    assert store.catalog(AWS) is None
    assert store.progress(RUN) is None
    assert store.terminal_event(RUN, 1) is None
    assert store.waiter(RUN) is None
    assert store.last_signal(RUN) == 0
    assert store.machine_by_instance(ACCOUNT, "us-east-1", "i-1") is None


def test_every_kind_of_thing_is_read_back(store: Store) -> None:
    store.commit(
        organization(),
        member("olga"),
        aws_connection(),
        s3_connection(),
        catalog(),
        project(),
        dataset_version(),
    )

    assert store.organization(ORG) == replace(organization(), version=1)
    assert store.member(ORG, "olga") == replace(member("olga"), version=1)
    assert store.connection(ORG, AWS) == aws_connection(version=1)
    assert store.connection(ORG, S3) == s3_connection(version=1)
    assert store.catalog(AWS) == catalog(version=1)
    assert store.project(ORG, PROJECT) == replace(project(), version=1)
    assert store.dataset_version(ORG, DATASET) == dataset_version(version=1)


def test_things_are_found_only_through_their_own_organization(store: Store) -> None:
    store.commit(aws_connection(), project(), dataset_version())

    for read in (
        lambda: store.connection("org-2", AWS),
        lambda: store.project("org-2", PROJECT),
        lambda: store.dataset_version("org-2", DATASET),
    ):
        with pytest.raises(NotFound):
            read()
    assert list(store.dataset_versions("org-2", PROJECT)) == []


def test_an_organizations_things_are_listed(store: Store) -> None:
    store.commit(
        aws_connection(),
        s3_connection(),
        s3_connection(id="conn-9", organization_id="org-2"),
        project(),
        project("proj-9", "org-2"),
        dataset_version(id="data-2", created_at=later(minutes=1)),
        dataset_version(),
        dataset_version(id="data-9", project_id="proj-9"),
    )

    assert [each.id for each in store.connections(ORG)] == [AWS, S3]
    assert [each.id for each in store.projects(ORG)] == [PROJECT]
    assert [each.id for each in store.dataset_versions(ORG, PROJECT)] == [DATASET, "data-2"]


def test_a_person_belongs_to_several_organizations(store: Store) -> None:
    store.commit(member("mia"), member("mia", "org-2", Role.OWNER), member("olga"))

    assert [(each.organization_id, each.role) for each in store.memberships("mia")] == [
        (ORG, Role.MEMBER),
        ("org-2", Role.OWNER),
    ]


def test_runs_are_listed_newest_first(store: Store) -> None:
    store.commit(
        run(id="run-a"),
        run(id="run-b", created_at=later(minutes=2)),
        run(id="run-c", created_at=later(minutes=1)),
        run(id="run-z", organization_id="org-2"),
    )

    assert [each.id for each in store.runs(ORG)] == ["run-b", "run-c", "run-a"]


def test_machines_are_in_the_order_of_their_attempts(store: Store) -> None:
    store.commit(machine(attempt=10), machine(attempt=2), machine(attempt=1), machine(run_id="run-2"))

    assert [each.attempt for each in store.machines(RUN)] == [1, 2, 10]


def test_a_machine_is_found_by_account_region_and_instance(store: Store) -> None:
    store.commit(machine())
    assert store.machine_by_instance(ACCOUNT, "us-east-1", "i-1") is None

    seen = Observation(state=Seen.PENDING, instance_id="i-1")
    store.commit(store.machine(RUN, 1).observed(seen, at=NOON))

    assert store.machine_by_instance(ACCOUNT, "us-east-1", "i-1") == store.machine(RUN, 1)
    for other in (
        ("999900001111", "us-east-1", "i-1"),
        (ACCOUNT, "eu-west-1", "i-1"),
        (ACCOUNT, "us-east-1", "i-2"),
    ):
        assert store.machine_by_instance(*other) is None


# -- what is written often ---------------------------------------------------------------------------------


# -- what the sweep must see -------------------------------------------------------------------------------


def test_machines_are_listed_until_they_are_closed(store: Store) -> None:
    store.commit(machine(), machine(attempt=2), machine(run_id="run-2", organization_id="org-2"))

    assert [(each.run_id, each.attempt) for each in store.open_machines()] == [
        ("run-1", 1),
        ("run-1", 2),
        ("run-2", 1),
    ]

    store.commit(replace(store.machine(RUN, 1), confirmed_gone_at=later()))
    assert [(each.run_id, each.attempt) for each in store.open_machines()] == [("run-1", 2), ("run-2", 1)]


def test_runs_are_listed_from_their_launch_to_their_outcome(store: Store) -> None:
    launched = run(id="run-2", organization_id="org-2").launched("mia", at=NOON)
    store.commit(run(), launched, run(id="run-3", launched_at=NOON, outcome=Outcome.NEEDS_RECOVERY))

    assert store.runs_under_way() == [store.run("run-2")]

    store.commit(store.run("run-2").ended(Outcome.FAILED, at=later()))
    assert list(store.runs_under_way()) == []


def test_only_dataset_versions_without_an_end_are_listed_as_open(store: Store) -> None:
    for number, status in enumerate(DatasetStatus):
        store.commit(dataset_version(id=f"data-{number}", status=status))

    assert [each.status for each in store.open_dataset_versions()] == ["uploading", "validating"]

    store.commit(store.dataset_version(ORG, "data-1").valid())
    assert [each.id for each in store.open_dataset_versions()] == ["data-0"]


def test_a_content_belongs_to_one_version_of_a_project(store: Store) -> None:
    content = DatasetContent(organization_id=ORG, project_id=PROJECT, sha256="d" * 64, version_id=DATASET)
    store.commit(content)

    with pytest.raises(Conflict):
        store.commit(replace(content, version_id="data-2"))
    assert store.dataset_content(PROJECT, "d" * 64) == replace(content, version=1)
    assert store.dataset_content("proj-9", "d" * 64) is None
    assert store.dataset_content(PROJECT, "e" * 64) is None


def test_connections_of_all_organizations_that_machines_are_made_with_are_listed(store: Store) -> None:
    store.commit(aws_connection(), s3_connection(), aws_connection(id="conn-other", organization_id="org-2"))

    assert {each.id for each in store.compute_connections()} == {AWS, "conn-other"}
    assert list(store.removed_connections()) == []


def test_a_removed_connection_is_listed_until_its_credentials_are_deleted(store: Store) -> None:
    store.commit(aws_connection(), s3_connection(), aws_connection(id="conn-kept"))

    store.commit(store.connection(ORG, AWS).remove(at=NOON), store.connection(ORG, S3).remove(at=NOON))
    assert {each.id for each in store.removed_connections()} == {AWS, S3}
    assert {each.id for each in store.compute_connections()} == {"conn-kept"}

    store.commit(store.connection(ORG, AWS).purged(at=later(minutes=20)))
    assert {each.id for each in store.removed_connections()} == {S3}
    assert {each.id for each in store.compute_connections()} == {"conn-kept"}
    assert store.connection(ORG, AWS).purged_at == later(minutes=20)


def test_the_last_progress_wins(store: Store) -> None:
    first = Progress(
        run_id=RUN, attempt=1, phase=Phase.TRAINING, heard_at=NOON, step=1, loss=3.25, first_loss=3.5
    )
    last = replace(first, step=2, loss=0.1)

    store.save_progress(first)
    store.save_progress(last)

    assert store.progress(RUN) == last


def test_the_first_terminal_event_of_an_attempt_is_kept(store: Store) -> None:
    first = event(EventType.FAILED, code="diverged", message="loss is nan", loss=2.5)
    second = event(EventType.TRAINER_EXITED, source="host", exit_code=21)

    store.save_terminal_event(RUN, 1, first)
    store.save_terminal_event(RUN, 1, second)
    store.save_terminal_event(RUN, 2, second)

    assert store.terminal_event(RUN, 1) == first
    assert store.terminal_event(RUN, 2) == second


def test_signals_are_numbered_and_never_cleared(store: Store) -> None:
    assert [store.signal(RUN) for _ in range(3)] == [1, 2, 3]
    assert store.signal("run-2") == 1
    store.wait_with(RUN, "token-1")

    assert store.last_signal(RUN) == 3


def test_a_later_wait_replaces_the_one_before(store: Store) -> None:
    store.wait_with(RUN, "token-1")
    store.signal(RUN)
    store.wait_with(RUN, "token-2")

    assert store.waiter(RUN) == "token-2"
    assert store.waiter("run-2") is None
