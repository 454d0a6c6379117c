"""Drafting a run: what can be known to be wrong is told before anything is spent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tensorant.domain.connections import ConnectionStatus
from tensorant.domain.errors import Conflict, Invalid, NotFound, Rejected
from tensorant.domain.projects import DatasetStatus, Project
from tensorant.domain.storages import S3_ABILITIES
from tensorant.services.drafts import Drafts
from tensorant.services.projects import Projects
from tests.support.worlds import (
    AWS,
    G5,
    G6,
    MEMBER,
    NOON,
    ORG,
    S3,
    STRANGER,
    World,
    aws_connection,
    catalog,
    dataset_version,
    draft,
    gpu_type,
    s3_connection,
)

CHECKING, FAILED = ConnectionStatus.CHECKING, ConnectionStatus.FAILED


@pytest.fixture
def drafts(world: World) -> Drafts:
    return Drafts(world.store, world.clock, world.ids)


def test_a_draft_is_stored_and_rents_nothing(world: World, drafts: Drafts) -> None:
    made = drafts.create(MEMBER, ORG, draft())

    stored = world.store.run(made.id)
    assert stored.draft == draft()
    assert (stored.dataset.sha256, stored.dataset.rows) == ("d" * 64, 200)
    assert stored.storage_connection_id == S3
    assert stored.launched_at is None
    assert [fact.kind for fact in world.store.timeline(made.id)] == ["run_drafted"]
    assert world.compute.calls == []


@pytest.mark.parametrize(
    ("changes", "kind", "code", "field"),
    [
        ({"project_id": "proj-9"}, NotFound, "not_found", None),
        ({"dataset_version_id": "data-9"}, NotFound, "not_found", None),
        ({"connection_id": "conn-9"}, NotFound, "not_found", None),
        ({"connection_id": S3}, Invalid, "not_a_compute_connection", "connection_id"),
        ({"instance_types": ("g6.12xlarge",)}, Invalid, "instance_type_not_offered", "instance_types[0]"),
        ({"instance_types": (G6, "p9.xlarge")}, Invalid, "instance_type_not_offered", "instance_types[1]"),
    ],
)
def test_what_is_wrong_is_named(
    world: World,
    drafts: Drafts,
    changes: dict[str, Any],
    kind: type[Rejected],
    code: str,
    field: str | None,
) -> None:
    commits = len(world.store.commits)

    with pytest.raises(kind) as caught:
        drafts.create(MEMBER, ORG, draft(**changes))

    assert (caught.value.code, caught.value.field) == (code, field)
    assert caught.value.mend
    assert len(world.store.commits) == commits


def test_a_type_with_several_gpus_is_told_why_and_what_else(drafts: Drafts) -> None:
    with pytest.raises(Invalid, match="it has 4 GPUs, and a run uses exactly one") as caught:
        drafts.create(MEMBER, ORG, draft(instance_types=("g6.12xlarge",)))

    assert caught.value.mend == "Choose one of g5.xlarge, g6.xlarge."


def test_without_a_catalog_no_type_is_offered(world: World, drafts: Drafts) -> None:
    world.store.commit(catalog(types=(), version=1))

    with pytest.raises(Invalid, match="not in the connection's GPU catalog"):
        drafts.create(MEMBER, ORG, draft())


def test_a_dataset_of_another_project_is_refused(world: World, drafts: Drafts) -> None:
    world.store.commit(
        Project(
            id="proj-2",
            organization_id=ORG,
            name="other",
            storage_connection_id=S3,
            created_at=NOON,
            created_by="olga",
        )
    )

    with pytest.raises(Invalid) as caught:
        drafts.create(MEMBER, ORG, draft(project_id="proj-2"))
    assert caught.value.field == "dataset_version_id"


def test_what_is_not_ready_is_a_conflict(world: World, drafts: Drafts) -> None:
    world.store.commit(aws_connection(status=ConnectionStatus.FAILED, version=1))
    with pytest.raises(Conflict) as connection:
        drafts.create(MEMBER, ORG, draft())

    world.store.commit(dataset_version(status=DatasetStatus.VALIDATING, version=1))
    with pytest.raises(Conflict) as dataset:
        drafts.create(MEMBER, ORG, draft())

    assert (connection.value.code, dataset.value.code) == ("connection_not_ready", "dataset_not_valid")


@pytest.mark.parametrize("changes", [{"status": FAILED}, {"status": CHECKING}])
def test_the_projects_storage_must_be_ready(world: World, drafts: Drafts, changes: dict[str, Any]) -> None:
    world.store.commit(s3_connection(version=1, **changes))

    with pytest.raises(Conflict) as caught:
        drafts.create(MEMBER, ORG, draft())
    assert (caught.value.code, caught.value.field) == ("connection_not_ready", "project_id")


def test_storage_without_presigned_urls_takes_no_runs_yet(world: World, drafts: Drafts) -> None:
    poor = replace(S3_ABILITIES, presigned=False)
    world.store.commit(s3_connection(abilities=poor, version=1))

    with pytest.raises(Conflict) as caught:
        drafts.create(MEMBER, ORG, draft())

    assert (caught.value.code, caught.value.field) == ("storage_without_presigning", "project_id")
    assert "presigned URLs" in caught.value.mend


def test_another_check_under_way_does_not_stop_a_draft(world: World, drafts: Drafts) -> None:
    world.store.commit(
        aws_connection(status=CHECKING, version=1), s3_connection(status=CHECKING, checked_at=NOON, version=1)
    )

    assert drafts.create(MEMBER, ORG, draft()).draft == draft()


def test_a_type_without_a_price_is_refused_with_that_reason(world: World, drafts: Drafts) -> None:
    world.store.commit(catalog(types=(gpu_type(G6, None), gpu_type(G5, "1.006")), version=1))

    with pytest.raises(Invalid, match=r"g6\.xlarge can't be used: its price is unknown") as caught:
        drafts.create(MEMBER, ORG, draft())
    assert caught.value.mend == "Choose one of g5.xlarge."


def test_a_stranger_drafts_nothing(drafts: Drafts) -> None:
    with pytest.raises(NotFound):
        drafts.create(STRANGER, ORG, draft())


# -- projects ----------------------------------------------------------------------------------------------


def test_a_project_is_bound_to_storage(world: World) -> None:
    projects = Projects(world.store, world.clock, world.ids)

    made = projects.create(MEMBER, ORG, name="support", storage_connection_id=S3)

    assert projects.show(MEMBER, ORG, made.id).storage_connection_id == S3
    assert {each.id for each in projects.list(MEMBER, ORG)} == {"proj-1", "proj-101"}
    with pytest.raises(Invalid) as caught:
        projects.create(MEMBER, ORG, name="support", storage_connection_id=AWS)
    assert caught.value.field == "storage_connection_id"
