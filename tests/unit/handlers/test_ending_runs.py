"""The user API's ways to end a run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tensorant import bootstrap
from tensorant.domain.machines import Goal, Seen
from tensorant.domain.runs import Outcome
from tensorant.handlers import api
from tests.support.calls import Answer, Caller
from tests.support.worlds import NOON, ORG, RUN, World, run

RUNS = f"/v1/organizations/{ORG}/runs"


@pytest.fixture
def member(cloud: World, people: Callable[..., Caller]) -> Caller:
    return people(api)


def told(answer: Answer) -> tuple[int, str, str | None]:
    """Status, code and field of an error."""
    return answer.status, answer.error["code"], answer.error["field"]


def executions() -> list[str]:
    client = bootstrap.client("stepfunctions")
    arn = bootstrap.settings().state_machine_arn
    return [each["name"] for each in client.list_executions(stateMachineArn=arn)["executions"]]


def test_a_run_is_cancelled_at_once(cloud: World, member: Caller) -> None:
    cloud.rented()

    answer = member.post(f"{RUNS}/{RUN}/cancel", {})

    assert (answer.status, answer.body["outcome"]) == (202, "cancelled")
    assert cloud.machine.goal is Goal.GONE


def test_where_there_may_be_output_the_request_must_say_what_becomes_of_it(
    cloud: World, member: Caller
) -> None:
    cloud.rented()
    cloud.trained()

    assert told(member.post(f"{RUNS}/{RUN}/cancel", {})) == (422, "keep_output_required", "keep_output")
    kept = member.post(f"{RUNS}/{RUN}/cancel", {"keep_output": True})
    assert (kept.status, kept.body["outcome"]) == (202, "needs_recovery")


def test_what_was_kept_is_discarded_and_its_release_asked_for_again(cloud: World, member: Caller) -> None:
    cloud.rented(Seen.STOPPED, goal=Goal.STOPPED)
    cloud.change_run(outcome=Outcome.NEEDS_RECOVERY)

    discarded = member.post(f"{RUNS}/{RUN}/discard")
    again = member.post(f"{RUNS}/{RUN}/release")

    assert (discarded.status, discarded.body["outcome"]) == (202, "cancelled")
    assert (again.status, again.body["outcome"]) == (202, "cancelled")
    assert {"run-1-release-2", "run-1-release-3"} <= set(executions())


@pytest.mark.parametrize(
    ("action", "code"),
    [("discard", "nothing_to_discard"), ("release", "no_release_pending"), ("cancel", "run_ended")],
)
def test_what_a_success_has_no_use_for_is_a_conflict(
    cloud: World, member: Caller, action: str, code: str
) -> None:
    cloud.store.commit(run(launched_at=NOON, outcome=Outcome.SUCCEEDED))

    assert told(member.post(f"{RUNS}/{RUN}/{action}", {} if action == "cancel" else None)) == (
        409,
        code,
        None,
    )


@pytest.mark.parametrize("action", ["cancel", "discard", "release"])
def test_a_foreign_run_is_not_ended(cloud: World, member: Caller, action: str) -> None:
    cloud.rented()
    body = {} if action == "cancel" else None

    assert told(member.as_("sam").post(f"{RUNS}/{RUN}/{action}", body)) == (404, "not_found", None)
    assert cloud.run.outcome is None
