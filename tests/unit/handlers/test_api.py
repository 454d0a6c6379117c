"""The user API: statuses, shapes, and what a wrong request is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tensorant import bootstrap
from tensorant.domain.connections import ConnectionStatus
from tensorant.domain.errors import Conflict
from tensorant.domain.identity import Member, Organization, Role
from tensorant.domain.projects import DatasetStatus
from tensorant.handlers import api, problems
from tests.support.calls import Answer, Caller, fixture_of
from tests.support.worlds import NOON, ORG, RUN, World, aws_connection, dataset_version, later, run

BASE = f"/v1/organizations/{ORG}"
RUNS = f"{BASE}/runs"
NOBODYS = "org-unknown"


@pytest.fixture
def member(cloud: World, people: Callable[..., Caller]) -> Caller:
    return people(api)


@pytest.fixture
def admin(member: Caller) -> Caller:
    return member.as_("ada", **{"cognito:groups": ["staff", "platform-admins"]})


def draft_request(**changes: Any) -> dict[str, Any]:
    return {**fixture_of("draft_request"), **changes}


def refused(answer: Answer, status: int, code: str, field: str | None) -> None:
    """The documented error shape, complete."""
    assert answer.status == status, answer.body
    assert answer.body.keys() == {"error", "also"}
    assert answer.error.keys() == {"code", "field", "message", "mend", "request_id"}
    assert (answer.error["code"], answer.error["field"]) == (code, field)
    assert answer.error["message"]
    assert answer.error["mend"]
    assert answer.error["request_id"] == "request-1"


# -- who is asking -----------------------------------------------------------------------------------------


def test_a_person_sees_who_they_are(member: Caller) -> None:
    answer = member.get("/v1/me")

    assert answer.status == 200
    assert answer.body == {
        "subject": "mia",
        "platform_admin": False,
        "memberships": [{"organization_id": ORG, "role": "member"}],
    }


@pytest.mark.parametrize(
    "claims",
    [
        {"cognito:groups": ["staff", "platform-admins"]},
        {"cognito:groups": ["platform-admins"]},
        {"groups": ["platform-admins"]},
        {"groups": "platform-admins"},
    ],
)
def test_a_group_makes_a_platform_admin(member: Caller, claims: dict[str, Any]) -> None:
    assert member.as_("ada", **claims).get("/v1/me").body["platform_admin"] is True


@pytest.mark.parametrize(
    "groups",
    [
        "",
        [],
        ["staff platform-admins"],  # one group, which API Gateway flattens to what two would look like
        ["platform-admins-of-another-kind"],
        "[staff platform-admins]",
        "a,platform-admins",
    ],
)
def test_other_groups_do_not(member: Caller, groups: Any) -> None:
    assert member.as_("ada", **{"cognito:groups": groups}).get("/v1/me").body["platform_admin"] is False


def test_a_token_without_groups_makes_nobody_an_admin(member: Caller) -> None:
    assert member.as_("ada").get("/v1/me").body["platform_admin"] is False


def test_a_platform_admin_makes_an_organization(admin: Caller) -> None:
    answer = admin.post("/v1/organizations", {"name": "Orchid", "owner": "nora"})

    assert answer.status == 201
    assert answer.body["name"] == "Orchid"
    assert admin.as_("nora").get("/v1/me").body["memberships"] == [
        {"organization_id": answer.body["id"], "role": "owner"}
    ]


def test_nobody_else_does(member: Caller) -> None:
    answer = member.post("/v1/organizations", {"name": "Orchid", "owner": "nora"})

    refused(answer, 403, "platform_admin_only", None)


# -- what is not there -------------------------------------------------------------------------------------

PATHS = [
    "/connections",
    "/connections/conn-aws",
    "/connections/conn-aws/gpus",
    "/projects",
    "/projects/proj-1",
    "/projects/proj-1/dataset-versions",
    "/dataset-versions/data-1",
    "/runs",
    "/runs/run-1",
    "/runs/run-1/events",
    "/runs/run-1/logs",
]


@pytest.mark.parametrize("path", PATHS)
def test_another_organization_is_not_found(cloud: World, member: Caller, path: str) -> None:
    cloud.store.commit(run())

    assert member.get(BASE + path).status == 200
    refused(member.as_("sam").get(BASE + path), 404, "not_found", None)
    refused(member.get(f"/v1/organizations/{NOBODYS}{path}"), 404, "not_found", None)


@pytest.mark.parametrize(
    "path", ["/connections/conn-aws", "/projects/proj-1", "/dataset-versions/data-1", "/runs/run-1"]
)
def test_our_things_are_not_found_through_an_organization_of_theirs(
    cloud: World, member: Caller, path: str
) -> None:
    cloud.store.commit(
        run(),
        Organization(id="org-2", name="Others", created_at=NOON),
        Member(organization_id="org-2", subject="nora", role=Role.OWNER, created_at=NOON),
    )

    refused(member.as_("nora").get(f"/v1/organizations/org-2{path}"), 404, "not_found", None)


def test_a_foreign_run_is_not_launched(cloud: World, member: Caller) -> None:
    cloud.store.commit(run())

    refused(member.as_("sam").post(f"{RUNS}/{RUN}/launch"), 404, "not_found", None)
    assert cloud.store.run(RUN).launched_at is None


def test_an_unknown_route_is_not_found_in_the_same_shape(member: Caller) -> None:
    refused(member.get("/v1/nothing"), 404, "not_found", None)


# -- drafts ------------------------------------------------------------------------------------------------


def test_a_draft_is_made(cloud: World, member: Caller) -> None:
    answer = member.post(RUNS, draft_request())

    assert answer.status == 201
    assert answer.body["name"] == "first"
    assert answer.body["price_limit_usd_per_hour"] == "2.00"
    assert answer.body["spec"]["lora"]["rank"] == 8
    assert answer.body["outcome"] is None
    assert cloud.store.run(answer.body["id"]).created_by == "mia"


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"colour": "green"}, "extra_forbidden", "colour"),
        ({"price_limit_usd_per_hour": "-1"}, "greater_than", "price_limit_usd_per_hour"),
        ({"price_limit_usd_per_hour": 0}, "greater_than", "price_limit_usd_per_hour"),
        ({"price_limit_usd_per_hour": "NaN"}, "finite_number", "price_limit_usd_per_hour"),
        ({"time_limit_minutes": 72 * 60 + 1}, "less_than_equal", "time_limit_minutes"),
        ({"workspace_gib": 5}, "greater_than_equal", "workspace_gib"),
        ({"instance_types": []}, "too_short", "instance_types"),
        ({"instance_types": ["g6"]}, "string_pattern_mismatch", "instance_types[0]"),
        ({"name": ""}, "string_too_short", "name"),
        ({"training": {"max_steps": 1}}, "greater_than_equal", "training.max_steps"),
        ({"lora": {"rank": 8, "colour": "green"}}, "value_error", "lora"),
        ({"instance_types": ["g6.12xlarge"]}, "instance_type_not_offered", "instance_types[0]"),
        ({"connection_id": "conn-s3"}, "not_a_compute_connection", "connection_id"),
    ],
)
def test_a_wrong_field_is_named_with_its_mend(
    member: Caller, changes: dict[str, Any], code: str, field: str
) -> None:
    refused(member.post(RUNS, draft_request(**changes)), 422, code, field)


def test_a_type_with_several_gpus_is_told_what_else_there_is(member: Caller) -> None:
    answer = member.post(RUNS, draft_request(instance_types=["g6.12xlarge"]))

    assert "4 GPUs" in answer.error["message"]
    assert answer.error["mend"] == "Choose one of g5.xlarge, g6.xlarge."


def test_every_fault_of_a_request_is_told_at_once(member: Caller) -> None:
    request = draft_request(colour="green", time_limit_minutes=0)
    del request["name"]

    answer = member.post(RUNS, request)

    told = [answer.error, *answer.body["also"]]
    assert {each["field"] for each in told} == {"name", "colour", "time_limit_minutes"}


@pytest.mark.parametrize("body", ["", "{", "[]", "null", '"text"'])
def test_a_body_that_is_no_object_is_a_fault_of_the_request(member: Caller, body: str) -> None:
    answer = member.post(RUNS, body)

    assert answer.status == 422
    assert answer.error["request_id"] == "request-1"
    assert answer.error["mend"]


@pytest.mark.parametrize(
    ("entity", "code"),
    [
        (aws_connection(status=ConnectionStatus.FAILED, version=1), "connection_not_ready"),
        (dataset_version(status=DatasetStatus.INVALID, version=1), "dataset_not_valid"),
    ],
)
def test_what_is_not_ready_is_a_conflict(cloud: World, member: Caller, entity: Any, code: str) -> None:
    cloud.store.commit(entity)

    answer = member.post(RUNS, draft_request())

    assert (answer.status, answer.error["code"]) == (409, code)


# -- runs --------------------------------------------------------------------------------------------------


def executions() -> list[str]:
    client = bootstrap.client("stepfunctions")
    arn = bootstrap.settings().state_machine_arn
    return [each["name"] for each in client.list_executions(stateMachineArn=arn)["executions"]]


def test_launching_is_accepted_once_however_often_it_is_asked(cloud: World, member: Caller) -> None:
    cloud.store.commit(run(id="run-twice"))

    first = member.post(f"{RUNS}/run-twice/launch")
    second = member.post(f"{RUNS}/run-twice/launch")

    assert (first.status, second.status) == (202, 202)
    assert first.body == second.body
    assert executions().count("run-twice-launch-1") == 1


def test_a_run_is_shown_with_three_separate_facts(cloud: World, member: Caller) -> None:
    cloud.claimed()

    body = member.get(f"{RUNS}/{RUN}").body

    assert (body["phase"], body["outcome"], body["machine"], body["cost_usd"]) == (
        "launching",
        None,
        None,
        "0",
    )
    assert body["quote"]["usd_per_hour"] == "0.8207"
    assert body["quote"]["excluded"][0] == "NAT gateway"


def test_runs_are_listed_newest_first(cloud: World, member: Caller) -> None:
    cloud.store.commit(run(), run(id="run-2", created_at=later(minutes=1)))

    assert [each["id"] for each in member.get(RUNS).body["items"]] == ["run-2", "run-1"]


def test_the_timeline_is_read(member: Caller) -> None:
    made = member.post(RUNS, draft_request()).body["id"]

    (fact,) = member.get(f"{RUNS}/{made}/events").body["items"]

    assert (fact["kind"], fact["source"], fact["message"]) == ("run_drafted", "mia", "first")


def test_the_log_is_read_in_pages(cloud: World, member: Caller) -> None:
    cloud.store.commit(run(id="run-logged", attempt=1))
    bootstrap.run_logs().append("run-logged", 1, "trainer", ["one", "two"], at=bootstrap.clock().now())

    first = member.get(f"{RUNS}/run-logged/logs", "limit=1").body
    rest = member.get(f"{RUNS}/run-logged/logs", f"limit=10&after={first['next']}").body

    assert [line["text"] for line in first["lines"]] == ["one"]
    assert [line["text"] for line in rest["lines"]] == ["two"]


@pytest.mark.parametrize("limit", ["0", "1001", "many"])
def test_a_page_has_a_sensible_size(cloud: World, member: Caller, limit: str) -> None:
    cloud.store.commit(run())

    answer = member.get(f"{RUNS}/{RUN}/logs", f"limit={limit}")

    assert (answer.status, answer.error["field"]) == (422, "limit")


# -- projects and dataset versions -------------------------------------------------------------------------


def test_a_project_is_made_and_listed(member: Caller) -> None:
    made = member.post(f"{BASE}/projects", {"name": "more", "storage_connection_id": "conn-s3"})

    assert made.status == 201
    assert made.body["id"] in {each["id"] for each in member.get(f"{BASE}/projects").body["items"]}


def test_a_project_needs_storage(member: Caller) -> None:
    answer = member.post(f"{BASE}/projects", {"name": "more", "storage_connection_id": "conn-aws"})

    refused(answer, 422, "not_a_storage_connection", "storage_connection_id")


def test_a_dataset_version_is_opened_completed_and_read(member: Caller) -> None:
    made = member.post(f"{BASE}/projects/proj-1/dataset-versions", {"name": "chats"})
    version_id = made.body["dataset_version"]["id"]
    completed = member.post(f"{BASE}/dataset-versions/{version_id}/complete")
    shown = member.get(f"{BASE}/dataset-versions/{version_id}")

    assert (made.status, completed.status, shown.status) == (201, 202, 200)
    assert made.body["expires_in_seconds"] == 3600
    assert f"datasets/{ORG}/{version_id}" in made.body["upload_url"]
    assert shown.body["status"] == "validating"


def test_a_closed_version_is_a_conflict(member: Caller) -> None:
    answer = member.post(f"{BASE}/dataset-versions/data-1/complete")

    assert (answer.status, answer.error["code"]) == (409, "dataset_version_closed")


# -- our own faults ----------------------------------------------------------------------------------------


def test_a_lost_race_may_be_tried_again() -> None:
    lost = Conflict("changed_meanwhile", "The record changed.", mend="Try again.")

    assert problems.answer(lost, "request-1").status_code == 503


@pytest.mark.parametrize("code", ["token_bound", "run_ended"])
def test_other_conflicts_stay(code: str) -> None:
    assert problems.answer(Conflict(code, "So it is.", mend="Look."), "request-1").status_code == 409


def test_a_fault_of_ours_says_nothing_of_its_inside(member: Caller, deployment: pytest.MonkeyPatch) -> None:
    bootstrap.settings.cache_clear()
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("ADMIN_GROUP")  # the deployment forgot a variable: nobody expects that
        answer = member.get("/v1/me")

    refused(answer, 500, "internal", None)
    assert "ADMIN_GROUP" not in str(answer.body)


def test_a_table_that_does_not_answer_is_trouble_that_may_pass(
    member: Caller, deployment: pytest.MonkeyPatch
) -> None:
    deployment.setenv("TABLE_NAME", "another-table")
    bootstrap.store.cache_clear()
    bootstrap.run_reader.cache_clear()

    answer = member.get(RUNS)

    assert (answer.status, answer.error["code"]) == (503, "record_failed")
