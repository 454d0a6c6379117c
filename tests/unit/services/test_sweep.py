"""The second line: what was left undone is done, and what only a person can mend is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tensorant.domain.connections import Connection
from tensorant.domain.errors import FailureClass, Permission, ProviderFault
from tensorant.domain.machines import Disposition, Goal, MachineState, Seen
from tensorant.domain.runs import Outcome
from tensorant.services.removals import Purges
from tensorant.services.sweep import Sweep, SweepReport
from tests.support.fakes.compute import FakeCompute, Instance
from tests.support.worlds import (
    AWS,
    DEPLOYMENT,
    NOON,
    RUN,
    S3,
    World,
    aws_connection,
    catalog,
    later,
    machine,
    run,
    s3_connection,
)

STOPPED: dict[str, Any] = {"goal": Goal.STOPPED}
GONE: dict[str, Any] = {"goal": Goal.GONE, "disposition": Disposition.VERIFIED}
LISTED = ("list", DEPLOYMENT)
FIRST = f"{RUN}/1"
NOTHING = SweepReport()


@pytest.fixture
def sweep(world: World) -> Sweep:
    purges = Purges(world.store, world.secrets, world.clock)
    return Sweep(world.store, world.computes, world.workflow, world.clock, purges, DEPLOYMENT)


def under_way(world: World) -> None:
    """Its execution runs."""
    world.workflow.start(world.run)


def decided(world: World) -> None:
    """Its outcome is known, and its execution has ended."""
    world.change_run(outcome=Outcome.SUCCEEDED)


# -- runs --------------------------------------------------------------------------------------------------


def test_a_launch_that_nobody_started_is_started_after_its_grace(world: World, sweep: Sweep) -> None:
    world.launched()

    world.clock.forward(minutes=9, seconds=59)
    assert sweep.sweep() == NOTHING
    world.clock.forward(seconds=1)
    assert sweep.sweep() == SweepReport(started=[RUN])

    assert world.workflow.started == ["run-1-launch-1"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"launched_at": NOON, "outcome": Outcome.FAILED},
        {"launched_at": NOON, "outcome": Outcome.NEEDS_RECOVERY},
    ],
    ids=["draft", "failed", "needs recovery"],
)
def test_drafts_and_what_has_ended_are_left_alone(
    world: World, sweep: Sweep, changes: dict[str, Any]
) -> None:
    world.store.commit(run(**changes))
    world.clock.forward(days=1)

    assert sweep.sweep() == NOTHING
    assert world.workflow.started == []


def test_a_run_that_is_worked_on_is_left_alone(world: World, sweep: Sweep) -> None:
    world.rented()
    under_way(world)
    before = world.run
    world.clock.forward(hours=1)

    assert sweep.sweep() == NOTHING
    assert world.run == before
    assert world.compute.calls == [LISTED]


def test_a_run_whose_execution_has_ended_is_given_up_and_kept(world: World, sweep: Sweep) -> None:
    rented = world.rented()
    under_way(world)
    world.workflow.ended.add("run-1-launch-1")
    world.clock.forward(minutes=10)

    assert sweep.sweep().ended == [RUN]
    assert world.run.outcome is Outcome.NEEDS_RECOVERY
    assert world.run.failure is not None
    assert world.run.failure.code == "workflow_interrupted"
    assert world.compute.asked("stop") == [rented.instance_id]


def test_a_run_past_its_limit_is_stopped_and_its_workflow_woken(world: World, sweep: Sweep) -> None:
    # the limit of two hours was set at noon; ten minutes are its workflow's to notice
    rented = world.rented()
    under_way(world)
    world.store.wait_with(RUN, "token-1")

    world.clock.at = later(hours=2, minutes=10)
    assert sweep.sweep() == NOTHING
    world.clock.forward(seconds=1)
    report = sweep.sweep()

    assert report.overdue == [RUN]
    assert world.run.failure is not None
    assert (world.run.outcome, world.run.failure.failure_class) == (
        Outcome.NEEDS_RECOVERY,
        FailureClass.DEADLINE,
    )
    assert world.compute.asked("stop") == [rented.instance_id]
    assert world.workflow.woken == ["token-1"]


@pytest.mark.parametrize("refused", [False, True])
def test_past_its_limit_without_a_machine_only_the_workflow_is_woken(
    world: World, sweep: Sweep, *, refused: bool
) -> None:
    if refused:
        world.asked(goal=Goal.GONE, disposition=Disposition.NOTHING_TO_KEEP, confirmed_gone_at=later())
    else:
        world.claimed()
    under_way(world)
    world.clock.forward(hours=3)

    assert sweep.sweep() == SweepReport(overdue=[RUN])
    assert world.run.outcome is None
    assert world.store.last_signal(RUN) == 1


# -- machines ----------------------------------------------------------------------------------------------


def test_a_machine_that_was_to_go_and_runs_is_terminated(world: World, sweep: Sweep) -> None:
    rented = world.rented(**GONE)
    decided(world)

    sweep.sweep()

    assert world.compute.calls == [LISTED, ("terminate", rented.instance_id)]


def test_a_machine_that_is_missing_from_the_listing_is_read_by_its_id(world: World, sweep: Sweep) -> None:
    rented = world.rented(**GONE)
    decided(world)
    world.compute.instances[rented.instance_id or ""].tags.clear()

    sweep.sweep()

    assert world.compute.calls == [
        LISTED,
        ("observe", rented.instance_id),
        ("terminate", rented.instance_id),
    ]


def test_a_machine_that_has_gone_is_confirmed(world: World, sweep: Sweep) -> None:
    rented = world.rented(Seen.SHUTTING_DOWN, **GONE)
    decided(world)
    world.compute.let_time_pass()

    assert sweep.sweep() == SweepReport(converged=[FIRST])
    assert world.machine.state is MachineState.RELEASED
    assert world.compute.calls == [LISTED, ("observe", rented.instance_id)]
    assert sweep.sweep() == NOTHING  # closed: not looked at again


def test_an_ask_without_an_answer_is_found_in_the_listing_by_its_token(world: World, sweep: Sweep) -> None:
    asked = world.asked(**GONE)
    decided(world)
    made = world.compute.ask(asked, user_data="")
    world.compute.calls.clear()

    assert sweep.sweep() == SweepReport(converged=[FIRST])
    assert world.machine.instance_id == made.instance_id
    assert world.compute.calls == [LISTED, ("terminate", made.instance_id)]


def test_an_ask_that_made_nothing_is_closed_after_its_lease(world: World, sweep: Sweep) -> None:
    asked = world.asked(**GONE)
    decided(world)

    world.clock.forward(minutes=4, seconds=59)
    assert sweep.sweep() == NOTHING
    world.clock.forward(seconds=1)
    assert sweep.sweep() == SweepReport(converged=[FIRST])

    assert world.machine.state is MachineState.NEVER_EXISTED
    assert world.compute.asked("observe") == [asked.client_token] * 2


def test_a_retained_machine_is_reported_each_time(world: World, sweep: Sweep) -> None:
    world.rented(Seen.STOPPED, **STOPPED)
    world.change_run(outcome=Outcome.NEEDS_RECOVERY)

    for _ in range(2):
        assert sweep.sweep() == SweepReport(retained=[FIRST])
    assert world.compute.calls == [LISTED, LISTED]


def test_a_machine_under_recovery_is_stopped_when_its_window_ends(world: World, sweep: Sweep) -> None:
    rented = world.rented(Seen.STOPPED, **STOPPED)
    world.change_run(outcome=Outcome.NEEDS_RECOVERY)
    world.compute.restart(rented.instance_id or "", at=world.clock.forward(hours=1))

    assert sweep.sweep() == SweepReport(converged=[FIRST])
    world.clock.at = later(hours=2, minutes=59, seconds=59)
    assert sweep.sweep() == NOTHING
    assert world.compute.asked("stop") == []
    world.clock.forward(seconds=1)
    sweep.sweep()

    assert world.compute.asked("stop") == [rented.instance_id]


def test_a_listing_that_a_change_has_overtaken_is_not_believed(world: World, sweep: Sweep) -> None:
    rented = world.rented(Seen.PENDING, **STOPPED)
    decided(world)
    world.compute.let_time_pass()
    world.store.before_next_commit(lambda: world.change_machine(**GONE))

    sweep.sweep()

    assert world.compute.asked("observe") == [rented.instance_id]
    assert world.compute.asked("terminate") == [rented.instance_id]


# -- machines that no record knows -------------------------------------------------------------------------


def stray(**changes: Any) -> Instance:
    """It has run since noon, tagged for this deployment and for a run that nobody knows."""
    instance = Instance(
        id="i-stray",
        client_token="token",
        user_data="",
        state=Seen.RUNNING,
        started_at=NOON,
        tags={"tensorant:deployment": DEPLOYMENT, "tensorant:run": "run-9", "tensorant:attempt": "1"},
    )
    return replace(instance, **changes)


def test_a_machine_that_no_record_knows_is_told_at_once_and_stopped_after_an_hour(
    world: World, sweep: Sweep
) -> None:
    world.compute.add(stray())

    world.clock.forward(hours=1)
    assert sweep.sweep() == SweepReport(unknown=["i-stray"])
    assert world.compute.asked("stop") == []
    world.clock.forward(seconds=1)
    assert sweep.sweep() == SweepReport(unknown=["i-stray"])

    assert world.compute.asked("stop") == ["i-stray"]
    assert world.compute.asked("terminate") == []


@pytest.mark.parametrize("state", [Seen.PENDING, Seen.STOPPING, Seen.STOPPED, Seen.SHUTTING_DOWN])
def test_one_that_does_not_run_is_only_told(world: World, sweep: Sweep, state: Seen) -> None:
    world.compute.add(stray(state=state))
    world.clock.forward(days=1)

    assert sweep.sweep() == SweepReport(unknown=["i-stray"])
    assert world.compute.calls == [LISTED]


def test_another_deployments_machines_are_not_seen(world: World, sweep: Sweep) -> None:
    world.compute.add(stray(tags={"tensorant:deployment": "dep-2"}))
    world.clock.forward(days=1)

    assert sweep.sweep() == NOTHING


@pytest.mark.parametrize(
    "tags",
    [
        {},
        {"tensorant:run": RUN},
        {"tensorant:run": RUN, "tensorant:attempt": "2"},
        {"tensorant:run": RUN, "tensorant:attempt": "1"},
    ],
    ids=["no run", "no attempt", "another attempt", "another machine"],
)
def test_tags_alone_make_no_machine_known(world: World, sweep: Sweep, tags: dict[str, str]) -> None:
    world.rented()
    under_way(world)
    world.compute.add(stray(tags={"tensorant:deployment": DEPLOYMENT, **tags}))

    assert sweep.sweep() == SweepReport(unknown=["i-stray"])


def test_a_machine_whose_record_says_that_it_never_existed_is_unknown(world: World, sweep: Sweep) -> None:
    world.asked(goal=Goal.GONE, disposition=Disposition.NOTHING_TO_KEEP, confirmed_gone_at=later())
    decided(world)
    tags = machine().parameters.tags
    world.compute.add(stray(client_token=machine().client_token, tags=dict(tags)))

    assert sweep.sweep() == SweepReport(unknown=["i-stray"])


# -- trouble -----------------------------------------------------------------------------------------------


def test_a_refused_call_is_told_with_its_mend_and_kept_in_the_record(world: World, sweep: Sweep) -> None:
    rented = world.rented(**GONE)
    decided(world)
    world.compute.fail_next(
        "terminate", Permission("UnauthorizedOperation", "Not allowed.", mend="Allow it.")
    )

    report = sweep.sweep()

    assert report == SweepReport(troubled={rented.instance_id or "": "Not allowed. Allow it."})
    assert world.machine.trouble is not None
    assert world.machine.trouble.code == "UnauthorizedOperation"


def test_trouble_with_one_run_does_not_stop_the_others(world: World, sweep: Sweep) -> None:
    first, second = world.launched(), replace(world.run, id="run-2", version=0)
    world.store.commit(second)
    world.workflow.trouble.append(ProviderFault("workflow_failed", "No answer.", mend="Wait."))
    world.clock.forward(hours=1)

    report = sweep.sweep()

    assert report == SweepReport(started=[second.id], troubled={first.id: "No answer. Wait."})


def test_trouble_with_one_connection_does_not_stop_the_others(world: World, sweep: Sweep) -> None:
    other = FakeCompute()
    world.computes.by_connection = {AWS: world.compute, "conn-aws-2": other}
    world.store.commit(aws_connection(id="conn-aws-2"), catalog(connection_id="conn-aws-2"))
    world.compute.fail_next("list", ProviderFault("no_answer", "AWS did not answer."))
    other.add(stray())

    report = sweep.sweep()

    assert report == SweepReport(unknown=["i-stray"], troubled={AWS: "AWS did not answer."})


# -- reminders ---------------------------------------------------------------------------------------------


def test_a_kept_disk_is_told_of_after_one_three_and_seven_days(world: World, sweep: Sweep) -> None:
    world.rented(Seen.STOPPED, goal=Goal.STOPPED, confirmed_stopped_at=NOON, seen_at=NOON)
    decided(world)
    told: list[int] = []

    for _day in range(8):
        sweep.sweep()
        sweep.sweep()  # saying it twice tells it once
        told.append(world.told().count("machine_still_retained"))
        world.clock.forward(days=1)

    assert told == [0, 1, 1, 2, 2, 2, 2, 3]


# -- removed connections -----------------------------------------------------------------------------------


def remove(world: World, *connections: Connection) -> None:
    """Removed at noon; their credentials are still kept."""
    for connection in connections:
        world.secrets.write(connection.id, {"access_key_id": "AKIA"})
        world.store.commit(connection.remove(at=NOON))


def test_the_credentials_of_removed_connections_are_deleted_after_a_grace(world: World, sweep: Sweep) -> None:
    remove(world, aws_connection(version=1), s3_connection(version=1))

    world.clock.forward(minutes=14)
    assert sweep.sweep() == NOTHING
    assert set(world.secrets.secrets) == {AWS, S3}
    world.clock.forward(minutes=1)
    assert sweep.sweep() == SweepReport(purged=[AWS, S3])
    assert world.secrets.secrets == {}

    world.compute.calls.clear()
    assert sweep.sweep() == NOTHING
    assert world.compute.calls == []


def test_a_removed_connection_is_visited_until_its_credentials_are_deleted(
    world: World, sweep: Sweep
) -> None:
    remove(world, aws_connection(version=1))
    world.compute.add(
        Instance("i-lost", "token", "", Seen.PENDING, NOON, tags={"tensorant:deployment": DEPLOYMENT})
    )

    assert sweep.sweep() == SweepReport(unknown=["i-lost"])


def test_revoked_credentials_do_not_keep_a_removed_connection(world: World, sweep: Sweep) -> None:
    remove(world, aws_connection(version=1))
    world.computes.trouble = Permission("AccessDenied", "No.", mend="Allow it.")
    world.clock.forward(minutes=15)

    report = sweep.sweep()

    assert report.purged == [AWS]
    assert report.troubled == {AWS: "No. Allow it."}
