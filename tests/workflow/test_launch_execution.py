"""Every way through the state machine, on the deployed template with the real functions behind it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from tensorant.adapters.step_functions import StepFunctions
from tensorant.domain.runs import Progress
from tensorant.services.signals import signal
from tests.support.archives import lora_tensors
from tests.workflow.conftest import World, ok, until
from tests.workflow.hosts import PlayedMachine


def wake(world: World, run_id: str) -> None:
    """A signal that says nothing: whoever is woken looks for himself."""
    signal(run_id, store=world.store, workflow=StepFunctions(world.cloud.client("stepfunctions")))


def end(world: World, run_id: str) -> None:
    """Leave no execution behind that waits for its machine."""
    instance_ids = [each["InstanceId"] for each in world.instances(run_id)]
    world.cloud.client("ec2").terminate_instances(InstanceIds=instance_ids)
    world.ended(run_id)


def test_a_sound_adapter_succeeds_and_its_machine_is_released(world: World) -> None:
    run_id = world.launch()
    machine = world.machine(run_id)
    machine.report("preflight_passed")
    machine.report("started", source="trainer")
    machine.upload()
    machine.report("completed", source="trainer")

    run = world.ended(run_id)

    assert run["outcome"] == "succeeded"
    assert run["phase"] == "ended"
    assert (run["machine"]["state"], run["machine"]["disposition"]) == ("released", "verified")
    assert [each["State"]["Name"] for each in world.instances(run_id)] == ["terminated"]
    assert run["report"]["sound"] is True
    kinds = world.kinds(run_id)
    assert kinds.index("machine_asked") < kinds.index("run_succeeded") < kinds.index("machine_released")


def test_a_finished_archive_counts_though_its_event_was_lost(world: World) -> None:
    run_id = world.launch()
    machine = world.machine(run_id)
    machine.upload()
    wake(world, run_id)

    assert world.ended(run_id)["outcome"] == "succeeded"


def test_a_killed_trainer_stops_the_machine_and_keeps_its_disk(world: World) -> None:
    run_id = world.launch()
    machine = world.machine(run_id)
    machine.report("started", source="trainer")
    machine.report("trainer_exited", exit_code=137)

    run = world.ended(run_id)

    assert run["outcome"] == "needs_recovery"
    assert (run["run"]["failure"]["code"], run["run"]["failure"]["failure_class"]) == (
        "trainer_killed",
        "training",
    )
    assert run["machine"]["state"] == "retained"
    (instance,) = world.instances(run_id)
    assert instance["State"]["Name"] == "stopped"
    assert instance["BlockDeviceMappings"]


def test_a_failed_preflight_leaves_nothing_to_keep(world: World) -> None:
    run_id = world.launch()
    world.machine(run_id).report("preflight_failed", code="driver_too_old", message="The driver is 535.")

    run = world.ended(run_id)

    assert (run["outcome"], run["run"]["failure"]["failure_class"]) == ("failed", "configuration")
    assert run["run"]["failure"]["message"] == "The driver is 535."
    assert (run["machine"]["state"], run["machine"]["disposition"]) == ("released", "nothing_to_keep")


def test_an_untrained_adapter_is_not_believed(world: World) -> None:
    run_id = world.launch()
    machine = world.machine(run_id)
    machine.upload(tensors=lora_tensors(rank=4, b=0.0))
    machine.report("completed", source="trainer")

    run = world.ended(run_id)

    assert (run["outcome"], run["run"]["failure"]["code"]) == ("failed", "untrained")
    # the archive is whole and holds nothing but zeros: there is nothing to keep
    assert (run["machine"]["state"], run["machine"]["disposition"]) == ("released", "nothing_to_keep")
    assert run["report"]["checks"] == ["zip", "manifest", "config", "header", "tensors", "hashes"]


def test_an_adapter_of_another_rank_is_kept(world: World) -> None:
    run_id = world.launch()
    machine = world.machine(run_id)
    machine.report("started", source="trainer")
    machine.upload(config={"r": 8})
    machine.report("completed", source="trainer")

    run = world.ended(run_id)

    assert (run["outcome"], run["run"]["failure"]["code"]) == ("needs_recovery", "config_rank")
    assert run["machine"]["state"] == "retained"


def test_an_upload_that_arrived_damaged_is_asked_for_again(world: World) -> None:
    run_id = world.launch()
    machine = world.machine(run_id)
    machine.report("started", source="trainer")
    machine.upload(damaged=True)
    machine.report("completed", source="trainer")
    until(lambda: machine.post("heartbeats", {}).json()["uploads_wanted"] == 2)

    machine.upload(number=2)
    machine.report("completed", source="trainer")
    run = world.ended(run_id)

    assert run["outcome"] == "succeeded"
    assert run["machine"]["disposition"] == "verified"
    kinds = world.kinds(run_id)
    assert kinds.index("upload_refused") < kinds.index("run_succeeded")


def test_a_completion_without_an_archive_is_not_believed(world: World) -> None:
    run_id = world.launch()
    world.machine(run_id).report("completed", source="trainer")

    run = world.ended(run_id)

    assert (run["outcome"], run["run"]["failure"]["code"]) == ("needs_recovery", "archive_missing")


def test_a_machine_terminated_outside_is_lost_and_released(world: World) -> None:
    run_id = world.launch()
    world.machine(run_id).report("started", source="trainer")
    (instance,) = world.instances(run_id)
    world.cloud.client("ec2").terminate_instances(InstanceIds=[instance["InstanceId"]])

    run = world.ended(run_id)

    assert (run["outcome"], run["run"]["failure"]["code"]) == ("failed", "machine_lost")
    assert run["machine"]["state"] == "released"


def test_a_machine_stopped_outside_is_kept(world: World) -> None:
    run_id = world.launch()
    world.machine(run_id).report("started", source="trainer")
    (instance,) = world.instances(run_id)
    world.cloud.client("ec2").stop_instances(InstanceIds=[instance["InstanceId"]])

    run = world.ended(run_id)

    assert (run["outcome"], run["run"]["failure"]["code"]) == ("needs_recovery", "machine_stopped")
    assert run["machine"]["state"] == "retained"


def test_a_run_past_its_limit_is_always_kept(world: World) -> None:
    run_id = world.launch()
    world.machine(run_id)
    run = world.store.run(run_id)
    assert run.deadline_at is not None
    world.store.commit(replace(run, deadline_at=run.deadline_at - timedelta(hours=2)))
    wake(world, run_id)

    ended = world.ended(run_id)

    assert (ended["outcome"], ended["run"]["failure"]["failure_class"]) == ("needs_recovery", "deadline")
    assert ended["machine"]["state"] == "retained"


def test_a_machine_that_falls_silent_is_kept(world: World) -> None:
    run_id = world.launch()
    machine = world.machine(run_id)
    machine.report("started", source="trainer")
    progress = world.store.progress(run_id)
    assert isinstance(progress, Progress)
    assert progress.heard_at is not None
    world.store.save_progress(replace(progress, heard_at=progress.heard_at - timedelta(minutes=6)))
    wake(world, run_id)

    ended = world.ended(run_id)

    assert (ended["outcome"], ended["run"]["failure"]["code"]) == ("needs_recovery", "heartbeat_lost")


def test_a_type_without_capacity_gives_way_to_the_next(world: World) -> None:
    world.cloud.aws.refuse_launches("g6.xlarge", "InsufficientInstanceCapacity")
    try:
        run_id = world.launch(instance_types=["g6.xlarge", "g5.xlarge"])
        world.machine(run_id)
    finally:
        world.cloud.aws.refuse_launches("g6.xlarge", None)

    (instance,) = world.instances(run_id)
    machine = world.status(run_id)["machine"]
    assert (instance["InstanceType"], machine["attempt"]) == ("g5.xlarge", 2)
    assert world.kinds(run_id).count("machine_refused") == 1
    end(world, run_id)


def test_a_machine_that_ends_for_want_of_capacity_gives_way_to_the_next(world: World) -> None:
    reason = ("Server.InsufficientInstanceCapacity", "There was insufficient capacity.")
    world.cloud.aws.fail_launches("g6.xlarge", reason)
    try:
        run_id = world.launch(instance_types=["g6.xlarge", "g5.xlarge"])
        world.machine(run_id)
    finally:
        world.cloud.aws.fail_launches("g6.xlarge", None)

    states = {each["InstanceType"]: each["State"]["Name"] for each in world.instances(run_id)}
    assert states == {"g6.xlarge": "terminated", "g5.xlarge": "running"}
    kinds = world.kinds(run_id)
    assert kinds.count("machine_asked") == 2
    # the second was asked for only when the first was confirmed gone
    assert kinds.index("machine_released") < len(kinds) - 1 - kinds[::-1].index("machine_asked")
    assert world.status(run_id)["machine"]["attempt"] == 2
    end(world, run_id)


def test_a_machine_whose_disk_may_not_be_encrypted_ends_the_run_with_its_mend(world: World) -> None:
    world.cloud.aws.fail_launches("g6.xlarge", ("Client.InternalError", "Client error on launch"))
    try:
        run_id = world.launch(instance_types=["g6.xlarge", "g5.xlarge"])
        run = world.ended(run_id)
    finally:
        world.cloud.aws.fail_launches("g6.xlarge", None)

    assert (run["outcome"], run["run"]["failure"]["failure_class"]) == ("failed", "permission")
    assert "kms:CreateGrant" in run["run"]["failure"]["mend"]
    assert run["machine"]["state"] == "released"


def test_a_disk_that_was_changed_to_stay_is_told_and_left_over(world: World) -> None:
    run_id = world.launch()
    world.machine(run_id).report("started", source="trainer")
    (instance,) = world.instances(run_id)
    device = {"DeviceName": instance["RootDeviceName"], "Ebs": {"DeleteOnTermination": False}}
    world.cloud.client("ec2").modify_instance_attribute(
        InstanceId=instance["InstanceId"], BlockDeviceMappings=[device]
    )
    wake(world, run_id)
    until(lambda: "machine_volume_kept" in world.kinds(run_id))

    end(world, run_id)

    run = world.status(run_id)
    volume_id = instance["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]
    assert (run["machine"]["volume_id"], run["machine"]["deleted_on_termination"]) == (volume_id, False)
    assert volume_id in run["machine"]["left_over"]
    assert [each["kind"] for each in run["warnings"]] == ["machine_volume_kept"]


def test_a_review_says_what_a_launch_would_cost_and_what_stands_against_it(world: World) -> None:
    run_id = str(
        ok(world.draft(instance_types=["g6.xlarge", "g5.xlarge"], price_limit_usd_per_hour="0.9"))["id"]
    )

    review = ok(world.owner.get(f"{world.path}/runs/{run_id}/review"))

    assert [(each["instance_type"], each["within_limit"]) for each in review["quotes"]] == [
        ("g6.xlarge", True),
        ("g5.xlarge", False),
    ]
    assert review["quote"]["priced_seconds_ago"] == 0
    assert [each["name"] for each in review["quote"]["parts"]] == ["compute", "disk"]
    assert (review["quota"]["family"], review["quota"]["needed"]) == ("G and VT", 4)
    assert [(each["code"], each["blocking"]) for each in review["problems"]] == [
        ("price_above_limit", False),  # of g5.xlarge, which is passed over
        ("connection_prices", False),  # the price list lacks a price for some type
    ]
    # an hour of g6.xlarge, the only one inside the limit
    assert review["most_usd"] == review["quotes"][0]["usd_per_hour"]


def test_a_quota_that_is_used_up_ends_the_run_with_nothing_rented(world: World) -> None:
    world.cloud.aws.refuse_launches("g6.xlarge", "VcpuLimitExceeded")
    try:
        run_id = world.launch(instance_types=["g6.xlarge", "g5.xlarge"])
        run = world.ended(run_id)
    finally:
        world.cloud.aws.refuse_launches("g6.xlarge", None)

    assert (run["outcome"], run["run"]["failure"]["failure_class"]) == ("failed", "quota")
    assert "Service Quotas" in run["run"]["failure"]["mend"]
    assert (run["machine"]["state"], world.instances(run_id)) == ("never_existed", [])


def test_a_price_above_the_limit_at_launch_rents_nothing(world: World) -> None:
    run_id = str(ok(world.draft())["id"])
    run = world.store.run(run_id)
    world.store.commit(replace(run, draft=replace(run.draft, price_limit_usd_per_hour=Decimal("0.50"))))
    ok(world.owner.post(f"{world.path}/runs/{run_id}/launch"))

    ended = world.ended(run_id)

    assert (ended["outcome"], ended["run"]["failure"]["code"]) == ("failed", "price_above_limit")
    assert (ended["machine"], world.instances(run_id)) == (None, [])


def test_two_launches_at_once_make_one_execution_and_one_instance(world: World) -> None:
    run_id = str(ok(world.draft())["id"])
    with ThreadPoolExecutor(4) as several:
        answers = list(
            several.map(lambda _: world.owner.post(f"{world.path}/runs/{run_id}/launch"), range(4))
        )
    world.machine(run_id)

    assert {answer.status_code for answer in answers} == {202}
    executions = world.cloud.client("stepfunctions").list_executions(
        stateMachineArn=world.cloud.outputs["StateMachineArn"]
    )["executions"]
    assert len([each for each in executions if each["name"].startswith(run_id)]) == 1
    assert len(world.instances(run_id)) == 1
    end(world, run_id)


def test_a_second_host_with_the_same_token_is_refused(world: World) -> None:
    run_id = world.launch()
    world.machine(run_id)

    copy = PlayedMachine(world.cloud.api_url, world.hosts.user_data[world.hosts.of_run(run_id)])
    answer = copy.exchange()

    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "token_bound")
    assert "token_reused" in world.kinds(run_id)
    end(world, run_id)


def test_a_machine_may_speak_no_more_once_its_attempt_is_over(world: World) -> None:
    run_id = world.launch()
    machine = world.machine(run_id)
    machine.report("trainer_exited", exit_code=1)
    world.ended(run_id)

    answer = machine.report("started", source="trainer")

    assert (answer.status_code, answer.json()["error"]["code"]) == (410, "attempt_over")


def test_an_unknown_operation_does_nothing(world: World) -> None:
    workflow = world.cloud.client("stepfunctions")
    arn = workflow.start_execution(
        stateMachineArn=world.cloud.outputs["StateMachineArn"],
        input='{"operation": "dance", "run_id": "run-1", "number": 1}',
    )["executionArn"]
    until(lambda: workflow.describe_execution(executionArn=arn)["status"] == "FAILED")

    assert workflow.describe_execution(executionArn=arn)["error"] == "UnknownOperation"


def test_people_reach_their_own_organization_only(world: World) -> None:
    run_id = str(ok(world.draft())["id"])

    for path in ("", f"/runs/{run_id}", f"/runs/{run_id}/review", "/connections", "/projects"):
        assert world.stranger.get(f"{world.path}{path}").status_code == 404
