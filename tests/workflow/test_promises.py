"""What people, providers and consoles do to a run, on the deployed template: nothing leaks and nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.workflow.conftest import World, ok, until


def booting(world: World, run_id: str) -> None:
    world.hosts.of_run(run_id)


def connected(world: World, run_id: str) -> None:
    world.machine(run_id)


def training(world: World, run_id: str) -> None:
    machine = world.machine(run_id)
    machine.report("started", source="trainer")
    machine.report("step", source="trainer", step=1, steps_total=9, loss=3.0)


def retained(world: World, run_id: str) -> None:
    machine = world.machine(run_id)
    machine.report("step", source="trainer", step=1, steps_total=9, loss=3.0)
    machine.report("trainer_exited", exit_code=137)
    world.ended(run_id)


PHASES: list[Callable[[World, str], None]] = [booting, connected, training]


def cancel(world: World, run_id: str, **body: Any) -> Any:
    return world.owner.post(f"{world.path}/runs/{run_id}/cancel", json=body)


def released(world: World, run_id: str) -> bool:
    status = world.status(run_id)
    return bool(status["machine"]) and status["machine"]["state"] == "released"


@pytest.mark.parametrize("reach", PHASES)
def test_a_cancelled_run_leaves_no_machine(world: World, reach: Callable[[World, str], None]) -> None:
    run_id = world.launch()
    reach(world, run_id)

    ok(cancel(world, run_id, keep_output=False))
    until(lambda: released(world, run_id))

    assert world.status(run_id)["outcome"] == "cancelled"
    assert [each["State"]["Name"] for each in world.instances(run_id)] == ["terminated"]
    assert world.execution(run_id, lambda status: status != "RUNNING") == "SUCCEEDED"


def test_a_run_cancelled_right_after_its_launch_rents_nothing_that_stays(world: World) -> None:
    run_id = world.launch()

    ok(cancel(world, run_id, keep_output=False))
    world.execution(run_id, lambda status: status != "RUNNING")

    assert world.status(run_id)["outcome"] == "cancelled"
    assert {each["State"]["Name"] for each in world.instances(run_id)} <= {"terminated"}


def test_cancelling_a_training_asks_whether_its_output_is_kept(world: World) -> None:
    run_id = world.launch()
    training(world, run_id)

    asked = cancel(world, run_id)
    assert (asked.status_code, asked.json()["error"]["field"]) == (422, "keep_output")

    ok(cancel(world, run_id, keep_output=True))
    run = world.ended(run_id)
    assert (run["outcome"], run["machine"]["state"]) == ("needs_recovery", "retained")

    ok(world.owner.post(f"{world.path}/runs/{run_id}/discard"))
    until(lambda: released(world, run_id))
    after = world.status(run_id)
    assert (after["outcome"], after["machine"]["disposition"]) == ("cancelled", "discarded")


def test_credentials_revoked_during_release_leave_it_pending_until_they_are_mended(world: World) -> None:
    run_id = world.launch()
    machine = world.machine(run_id)
    machine.upload()
    world.cloud.aws.refuse_action("TerminateInstances", "UnauthorizedOperation")
    try:
        machine.report("completed", source="trainer")
        assert world.execution(run_id, lambda status: status != "RUNNING") == "FAILED"
        pending = world.status(run_id)
    finally:
        world.cloud.aws.refuse_action("TerminateInstances", None)

    assert (pending["outcome"], pending["machine"]["state"]) == ("succeeded", "releasing")
    assert "tensorant:managed=true" in pending["machine"]["trouble"]["mend"]

    ok(world.owner.post(f"{world.path}/runs/{run_id}/release"))
    until(lambda: released(world, run_id))
    assert world.status(run_id)["machine"]["trouble"] is None


def test_an_execution_stopped_in_the_console_stops_the_machine_and_keeps_it(world: World) -> None:
    run_id = world.launch()
    training(world, run_id)

    world.cloud.client("stepfunctions").stop_execution(executionArn=world.execution_arn(run_id))
    until(lambda: world.status(run_id)["machine"]["state"] == "retained")

    run = world.status(run_id)
    assert (run["outcome"], run["run"]["failure"]["code"]) == ("needs_recovery", "workflow_interrupted")


def test_the_sweep_reports_a_tagged_machine_that_no_record_knows(world: World) -> None:
    ec2 = world.cloud.client("ec2")
    tags = [
        {"Key": "tensorant:managed", "Value": "true"},
        {"Key": "tensorant:deployment", "Value": "tensorant"},
        {"Key": "tensorant:run", "Value": "run-of-nobody"},
        {"Key": "tensorant:attempt", "Value": "1"},
    ]
    (stray,) = ec2.run_instances(
        ImageId=world.account.image_id,
        InstanceType="g6.xlarge",
        MinCount=1,
        MaxCount=1,
        SubnetId=world.account.subnet_id,
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )["Instances"]

    report = world.invoke("sweep")

    assert stray["InstanceId"] in report["unknown"]
    assert report["troubled"] == {}
    ec2.terminate_instances(InstanceIds=[stray["InstanceId"]])


def test_the_sweep_leaves_a_healthy_run_alone(world: World) -> None:
    run_id = world.launch()
    training(world, run_id)

    report = world.invoke("sweep")

    assert run_id not in report["started"] + report["ended"] + report["overdue"]
    assert world.status(run_id)["machine"]["state"] == "running"
    ok(cancel(world, run_id, keep_output=False))
    until(lambda: released(world, run_id))


def test_a_restarted_machine_is_recovering_and_then_retained_again(world: World) -> None:
    run_id = world.launch()
    retained(world, run_id)
    (instance,) = world.instances(run_id)
    ec2 = world.cloud.client("ec2")

    time.sleep(
        1.1
    )  # EC2's launch times are whole seconds: a start within the second of the stop is not later
    ec2.start_instances(InstanceIds=[instance["InstanceId"]])
    until(lambda: world.status(run_id)["machine"]["state"] == "recovering")
    assert world.status(run_id)["phase"] == "recovering"

    ec2.stop_instances(InstanceIds=[instance["InstanceId"]])
    until(lambda: world.status(run_id)["machine"]["state"] == "retained")
    ok(world.owner.post(f"{world.path}/runs/{run_id}/discard"))
    until(lambda: released(world, run_id))


def test_facts_reach_the_deployments_event_bus(world: World) -> None:
    queue = world.listen()
    run_id = str(ok(world.draft())["id"])
    heard: list[dict[str, Any]] = []

    def told() -> bool:
        heard.extend(event for event in world.heard(queue) if event["run_id"] == run_id)
        return bool(heard)

    until(told)

    assert (heard[0]["kind"], heard[0]["version"]) == ("run_drafted", 1)
