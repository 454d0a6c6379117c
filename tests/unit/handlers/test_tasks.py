"""The state machine's functions, and those that events start: payloads in, flat answers out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest

from tensorant import bootstrap
from tensorant.domain.errors import Conflict, NotFound
from tensorant.domain.machines import Disposition, Goal, Observation, Seen
from tensorant.domain.projects import DatasetStatus
from tensorant.domain.runs import Outcome
from tensorant.domain.steps import Step
from tensorant.handlers import (
    await_signal,
    connection_check,
    converge_machine,
    dataset_worker,
    ec2_events,
    execution_ended,
    launch_machine,
    observe_machine,
    sweep,
    validate_run,
    verify_adapter,
)
from tests.support.calls import CONTEXT, fixture_of
from tests.support.worlds import AWS, DATASET, ORG, RUN, S3, World, dataset_version, later, run

TASK = {"run_id": RUN, "operation": "launch", "number": 1}


def flat(answer: dict[str, Any]) -> dict[str, Any]:
    """What the state machine selects from must be complete, and JSON."""
    assert answer.keys() == {each.name for each in fields(Step)}
    assert json.loads(json.dumps(answer)) == answer
    return answer


def test_a_run_without_credentials_is_ended_by_its_validation(cloud: World) -> None:
    cloud.launched()

    answer = flat(validate_run.handler(TASK, CONTEXT))

    assert (answer["next"], answer["attempt"]) == ("end", 0)
    assert cloud.run.outcome is Outcome.FAILED


def test_a_claimed_run_goes_on_to_launch(cloud: World) -> None:
    cloud.claimed()

    assert flat(validate_run.handler(TASK, CONTEXT))["next"] == "launch"


@pytest.fixture
def credentials(deployment: pytest.MonkeyPatch) -> Iterator[None]:
    """The connection's own, for one test."""
    bootstrap.secrets().write(AWS, {"access_key_id": "AKIA", "secret_access_key": "secret"})
    yield
    name = f"{bootstrap.settings().secret_prefix}/{AWS}"
    bootstrap.client("secretsmanager").delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)


@pytest.mark.usefixtures("credentials")
def test_a_run_that_has_ended_is_not_launched(cloud: World) -> None:
    cloud.claimed()
    cloud.change_run(outcome=Outcome.CANCELLED)

    assert flat(launch_machine.handler({**TASK, "attempt": 0}, CONTEXT))["next"] == "stop"


def released(cloud: World) -> None:
    """With a machine that the provider has confirmed gone."""
    cloud.asked(
        instance_id="i-1",
        seen=Seen.GONE,
        goal=Goal.GONE,
        disposition=Disposition.VERIFIED,
        confirmed_gone_at=later(minutes=9),
    )


def test_a_machine_that_is_gone_is_released_and_verified(cloud: World) -> None:
    released(cloud)
    task = {**TASK, "attempt": 1}

    assert flat(observe_machine.handler(task, CONTEXT))["next"] == "release"
    assert flat(verify_adapter.handler(task, CONTEXT))["next"] == "release"


@pytest.mark.parametrize(("goal", "confirm"), [("gone", False), ("gone", True), ("stopped", True)])
def test_converging_a_machine_that_is_gone_ends(cloud: World, goal: str, *, confirm: bool) -> None:
    released(cloud)
    cloud.change_run(outcome=Outcome.SUCCEEDED)

    answer = converge_machine.handler({**TASK, "attempt": 0, "goal": goal, "confirm": confirm}, CONTEXT)

    assert (flat(answer)["next"], answer["attempt"]) == ("end", 1)


def test_a_release_without_a_reason_fails_by_its_name(cloud: World) -> None:
    cloud.rented(goal=Goal.STOPPED)

    with pytest.raises(Conflict):
        converge_machine.handler({**TASK, "attempt": 1, "goal": "gone", "confirm": False}, CONTEXT)


@pytest.mark.parametrize("event", [{}, {**TASK, "operation": "dance"}, {**TASK, "number": "one"}])
def test_a_payload_that_is_none_fails(cloud: World, event: dict[str, Any]) -> None:
    with pytest.raises((KeyError, ValueError)):
        observe_machine.handler(event, CONTEXT)


def test_a_run_that_nobody_knows_fails(cloud: World) -> None:
    with pytest.raises(NotFound):
        observe_machine.handler({**TASK, "attempt": 1}, CONTEXT)


def test_a_wait_is_registered(cloud: World) -> None:
    await_signal.handler({**TASK, "attempt": 1, "signal": 0, "task_token": "token-1"}, CONTEXT)

    assert cloud.store.waiter(RUN) == "token-1"


# -- events ------------------------------------------------------------------------------------------------


def running(cloud: World) -> None:
    """With a machine whose instance the events of the fixtures are about."""
    asked = cloud.asked()
    seen = Observation(state=Seen.RUNNING, instance_id="i-00000000000000001")
    cloud.store.commit(asked.observed(seen, at=later()))


def test_a_state_change_of_a_machine_is_signalled_to_its_run(cloud: World) -> None:
    running(cloud)

    ec2_events.handler(fixture_of("ec2_state_change"), CONTEXT)

    assert cloud.store.last_signal(RUN) == 1


def test_a_state_change_of_somebody_elses_machine_is_passed_over(cloud: World) -> None:
    cloud.store.commit(run())

    ec2_events.handler(fixture_of("ec2_state_change"), CONTEXT)

    assert cloud.store.last_signal(RUN) == 0


def health(**detail: Any) -> dict[str, Any]:
    notice = fixture_of("health_retirement")
    return {**notice, "detail": {**notice["detail"], **detail}}


def test_a_retirement_notice_is_a_warning_of_the_run(cloud: World) -> None:
    """The copy that Health sends to a second Region says in its detail which one it is about."""
    running(cloud)

    for _ in range(2):
        ec2_events.handler(health(), CONTEXT)

    (fact,) = cloud.store.timeline(RUN)
    assert (fact.kind, fact.attempt) == ("machine_warning", 1)
    assert "will stop the machine i-00000000000000001 from 2026-08-05 09:00 UTC on" in fact.message
    assert cloud.store.last_signal(RUN) == 0


def test_a_notice_may_name_an_arn_and_no_time(cloud: World) -> None:
    running(cloud)
    arn = "arn:aws:ec2:us-east-1:111122223333:instance/i-00000000000000001"

    ec2_events.handler(health(affectedEntities=[{"entityValue": arn}], startTime="soon"), CONTEXT)

    (fact,) = cloud.store.timeline(RUN)
    assert "at a time not yet known" in fact.message


def test_a_notice_that_is_closed_warns_of_nothing(cloud: World) -> None:
    running(cloud)

    ec2_events.handler(health(statusCode="closed"), CONTEXT)

    assert cloud.told() == []


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"detail-type": "EC2 Spot Instance Interruption Warning", "source": "aws.ec2"},
        {**fixture_of("ec2_state_change"), "source": "tensorant"},
        {**fixture_of("ec2_state_change"), "account": "a customer"},
        {**fixture_of("ec2_state_change"), "detail": {"state": "stopped"}},
        {**fixture_of("ec2_state_change"), "detail": None},
        health(service="RDS"),
        health(eventTypeCategory="issue"),
        health(eventTypeCode=""),
        health(affectedEntities=[{}]),
    ],
)
def test_an_event_that_is_none_is_passed_over_and_not_tried_again(
    cloud: World, event: dict[str, Any]
) -> None:
    running(cloud)

    ec2_events.handler(event, CONTEXT)

    assert (cloud.told(), cloud.store.last_signal(RUN)) == ([], 0)


def ended(**request: Any) -> dict[str, Any]:
    return {"detail": {"status": "FAILED", "input": json.dumps(request)}}


def test_an_execution_that_ended_badly_ends_its_run(cloud: World) -> None:
    cloud.claimed()

    execution_ended.handler(ended(run_id=RUN, operation="launch", number=1), CONTEXT)

    assert cloud.run.outcome is Outcome.FAILED


def test_an_execution_that_was_about_no_run_is_passed_over(cloud: World) -> None:
    cloud.claimed()

    execution_ended.handler(ended(comment="started by hand"), CONTEXT)

    assert cloud.run.outcome is None


def test_a_sweep_reports_in_json(cloud: World) -> None:
    cloud.launched()

    report = sweep.handler({}, CONTEXT)

    assert json.loads(json.dumps(report)) == report
    assert report["started"] == [RUN]
    assert report["datasets"] == {"restarted": [], "given_up": [], "abandoned": [], "troubled": {}}
    assert list(report["troubled"]) == [AWS]  # its credentials are not stored


# -- workers -----------------------------------------------------------------------------------------------


def test_a_connection_without_credentials_fails_its_check(cloud: World) -> None:
    connection_check.handler({"organization_id": ORG, "connection_id": AWS}, CONTEXT)

    connection = cloud.store.connection(ORG, AWS)
    assert connection.status == "failed"
    assert connection.checks[0].mend == "Save the connection's credentials again."


def test_a_dataset_is_validated_and_copied_to_the_organizations_bucket(cloud: World) -> None:
    row = b'{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n'
    waiting = dataset_version(status=DatasetStatus.VALIDATING, sha256=None, rows=None, bytes=None, version=1)
    cloud.store.commit(waiting)
    client = bootstrap.client("s3")
    client.put_object(Bucket="staging", Key=waiting.staging_key, Body=row)
    client.create_bucket(Bucket="adapters")
    bootstrap.secrets().write(S3, {"access_key_id": "AKIA", "secret_access_key": "secret"})

    dataset_worker.handler({"organization_id": ORG, "version_id": DATASET}, CONTEXT)

    stored = cloud.store.dataset_version(ORG, DATASET)
    copied = client.get_object(Bucket="adapters", Key=f"team/{stored.key}")["Body"].read()
    assert stored.status == "valid"
    assert copied == row
