"""Bringing a machine to its goal."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant.domain.errors import Conflict, FailureClass, NotYetConfirmed, ProviderFault
from tensorant.domain.failures import Failure
from tensorant.domain.machines import Disposition, Goal, MachineState, Observation, RootVolume, Seen
from tensorant.domain.runs import Operation, Outcome
from tensorant.domain.steps import Next
from tensorant.services.converge import Converger, converge, record
from tests.support.worlds import RUN, World, later, step

VERIFIED = {"goal": Goal.GONE, "disposition": Disposition.VERIFIED}
GONE_FOR_NOTHING: dict[str, Any] = {"goal": Goal.GONE, "disposition": Disposition.NOTHING_TO_KEEP}
NO_ANSWER = ProviderFault("no_answer", "AWS did not answer.")


@pytest.fixture
def converger(world: World) -> Converger:
    return Converger(world.store, world.computes, world.clock)


def once(world: World) -> Any:
    return converge(world.machine, compute=world.compute, store=world.store, clock=world.clock)


# -- one convergence ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "seen", "call"),
    [
        (Goal.RUN, Seen.RUNNING, None),
        (Goal.STOPPED, Seen.PENDING, None),
        (Goal.STOPPED, Seen.RUNNING, "stop"),
        (Goal.STOPPED, Seen.STOPPING, None),
        (Goal.STOPPED, Seen.STOPPED, None),
        (Goal.GONE, Seen.PENDING, "terminate"),
        (Goal.GONE, Seen.RUNNING, "terminate"),
        (Goal.GONE, Seen.STOPPED, "terminate"),
        (Goal.GONE, Seen.SHUTTING_DOWN, None),
    ],
)
def test_a_convergence_reads_once_and_makes_at_most_one_call(
    world: World, goal: Goal, seen: Seen, call: str | None
) -> None:
    rented = world.rented(seen, goal=goal)

    once(world)

    wanted = [("observe", rented.instance_id)] + ([(call, rented.instance_id)] if call else [])
    assert world.compute.calls == wanted


def test_a_late_stop_does_not_undo_a_release(world: World, converger: Converger) -> None:
    world.rented(**VERIFIED)
    world.change_run(outcome=Outcome.SUCCEEDED)

    converger.toward(step(), Goal.STOPPED, confirm=False)

    assert world.machine.goal is Goal.GONE
    assert world.run.outcome is Outcome.SUCCEEDED
    assert world.compute.asked("terminate") == [world.machine.instance_id]
    assert world.compute.asked("stop") == []


def test_a_machine_that_is_confirmed_gone_is_not_looked_at_again(world: World) -> None:
    world.rented(Seen.GONE, **VERIFIED)

    assert once(world).state is MachineState.RELEASED
    assert world.compute.calls == []


def test_converging_again_and_again_ends_released(world: World) -> None:
    world.rented(**VERIFIED)

    once(world)
    world.compute.let_time_pass()
    once(world)
    once(world)

    assert world.machine.state is MachineState.RELEASED
    assert len(world.compute.asked("terminate")) == 1
    assert world.told() == ["machine_released"]


def test_a_machine_whose_id_was_never_told_is_found_by_its_token_and_released(world: World) -> None:
    asked = world.asked(**VERIFIED)
    world.compute.ask(asked, user_data="")

    once(world)

    (instance,) = world.compute.instances.values()
    assert world.machine.instance_id == instance.id
    assert instance.state is Seen.SHUTTING_DOWN


def test_not_found_by_a_foreign_account_is_not_gone(world: World) -> None:
    rented = world.rented(**VERIFIED)
    world.compute.forget(rented.instance_id or "")
    world.compute.account_id = "999900001111"
    world.clock.forward(days=1)

    assert not once(world).closed


def test_not_found_by_its_own_account_is_gone_after_the_lease(world: World) -> None:
    rented = world.rented(**VERIFIED)
    world.compute.forget(rented.instance_id or "")

    world.clock.forward(minutes=4, seconds=59)
    assert not once(world).closed
    world.clock.forward(seconds=1)
    assert once(world).closed


def test_an_ask_that_made_nothing_ends_as_never_existed(world: World) -> None:
    world.asked(goal=Goal.STOPPED)
    world.clock.forward(minutes=5)

    assert once(world).state is MachineState.NEVER_EXISTED
    assert world.told() == ["machine_never_existed"]


def test_a_lost_race_writes_nothing(world: World) -> None:
    world.rented(goal=Goal.STOPPED)
    world.compute.set(world.machine.instance_id or "", Seen.STOPPED)
    world.store.before_next_commit(lambda: world.change_machine(**VERIFIED))

    with pytest.raises(Conflict):
        once(world)

    assert (world.machine.goal, world.machine.seen) == (Goal.GONE, Seen.RUNNING)


def test_what_is_no_news_is_not_written(world: World) -> None:
    rented = world.rented()
    commits = len(world.store.commits)
    world.clock.forward(minutes=1)

    once(world)

    assert len(world.store.commits) == commits
    assert world.machine == rented


def test_news_is_told_once(world: World) -> None:
    world.rented(Seen.PENDING)

    for _ in range(2):
        seen = Observation(state=Seen.RUNNING, instance_id=world.machine.instance_id)
        record(world.machine, seen, store=world.store, clock=world.clock)

    assert world.told() == ["machine_running"]


# -- the workflow's steps ----------------------------------------------------------------------------------


def test_confirming_raises_until_the_provider_says_so(world: World, converger: Converger) -> None:
    world.rented(**VERIFIED)
    world.change_run(outcome=Outcome.SUCCEEDED)

    with pytest.raises(NotYetConfirmed):
        converger.toward(step(attempt=1), Goal.GONE, confirm=True)
    world.compute.let_time_pass()

    assert converger.toward(step(attempt=1), Goal.GONE, confirm=True) == step(attempt=1, next=Next.END)
    assert world.machine.confirmed_gone_at == world.clock.now()


def test_a_stop_is_confirmed_by_the_provider_alone(world: World, converger: Converger) -> None:
    world.rented(goal=Goal.STOPPED)

    with pytest.raises(NotYetConfirmed):
        converger.toward(step(attempt=1), Goal.STOPPED, confirm=True)
    world.compute.let_time_pass()
    converger.toward(step(attempt=1), Goal.STOPPED, confirm=True)

    assert world.machine.state is MachineState.RETAINED


def test_a_machine_may_not_go_without_a_reason(world: World, converger: Converger) -> None:
    world.rented(goal=Goal.STOPPED)

    with pytest.raises(Conflict) as caught:
        converger.toward(step(operation=Operation.RELEASE), Goal.GONE, confirm=False)

    assert caught.value.code == "no_disposition"
    assert world.machine.goal is Goal.STOPPED
    assert world.compute.asked("terminate") == []


def test_a_broken_off_workflow_stops_and_keeps(world: World, converger: Converger) -> None:
    world.rented()

    answer = converger.toward(step(), Goal.STOPPED, confirm=False)

    assert answer.attempt == 1
    assert world.run.outcome is Outcome.NEEDS_RECOVERY
    assert world.run.failure is not None
    assert world.run.failure.failure_class is FailureClass.PROVIDER_FAULT
    assert world.machine.goal is Goal.STOPPED
    assert world.compute.asked("stop") == [world.machine.instance_id]


def test_a_broken_off_workflow_without_a_machine_has_failed(world: World, converger: Converger) -> None:
    world.claimed()

    answer = converger.toward(step(), Goal.STOPPED, confirm=False)

    assert (answer.next, answer.attempt) == (Next.END, 0)
    assert world.run.outcome is Outcome.FAILED
    assert world.compute.calls == []


def test_a_broken_off_workflow_whose_last_ask_was_refused_has_failed(
    world: World, converger: Converger
) -> None:
    world.asked(goal=Goal.GONE, disposition=Disposition.NOTHING_TO_KEEP, confirmed_gone_at=later())

    assert converger.toward(step(), Goal.STOPPED, confirm=True).next is Next.END
    assert world.run.outcome is Outcome.FAILED


def test_an_outcome_that_was_decided_stays(world: World, converger: Converger) -> None:
    world.claimed()
    world.change_run(outcome=Outcome.CANCELLED)

    converger.toward(step(), Goal.STOPPED, confirm=False)

    assert world.run.outcome is Outcome.CANCELLED


def test_a_provider_that_does_not_answer_is_asked_again_by_the_workflow(
    world: World, converger: Converger
) -> None:
    world.rented(**VERIFIED)
    world.compute.fail_next("terminate", NO_ANSWER, acting=True)

    with pytest.raises(ProviderFault):
        converger.toward(step(), Goal.GONE, confirm=False)
    world.compute.let_time_pass()
    converger.toward(step(), Goal.GONE, confirm=True)

    assert world.machine.closed
    assert len(world.compute.asked("terminate")) == 1


def test_a_race_in_between_is_read_again(world: World, converger: Converger) -> None:
    world.rented()
    world.store.before_next_commit(lambda: world.change_machine(reason="somebody wrote"))

    converger.toward(step(), Goal.STOPPED, confirm=False)

    assert world.machine.goal is Goal.STOPPED
    assert world.run.outcome is Outcome.NEEDS_RECOVERY


def test_a_pending_machine_is_stopped_once_it_runs(world: World, converger: Converger) -> None:
    world.rented(Seen.PENDING, goal=Goal.STOPPED)

    for _ in range(2):
        with pytest.raises(NotYetConfirmed):
            converger.toward(step(), Goal.STOPPED, confirm=True)
        world.compute.let_time_pass()
    converger.toward(step(), Goal.STOPPED, confirm=True)

    assert world.compute.asked("stop") == [world.machine.instance_id]
    assert world.machine.seen is Seen.STOPPED
    assert world.machine.run_id == RUN


# -- after the machine -------------------------------------------------------------------------------------


@pytest.mark.parametrize("confirm", [False, True])
def test_a_run_that_goes_on_without_its_machine_asks_for_another(
    world: World, converger: Converger, *, confirm: bool
) -> None:
    world.asked(**GONE_FOR_NOTHING, confirmed_gone_at=later())

    assert converger.toward(step(attempt=1), Goal.GONE, confirm=confirm).next is Next.LAUNCH
    assert world.run.outcome is None


def test_a_run_whose_machine_is_still_going_waits(world: World, converger: Converger) -> None:
    world.rented(**GONE_FOR_NOTHING)

    assert converger.toward(step(attempt=1), Goal.GONE, confirm=False).next is Next.END
    with pytest.raises(NotYetConfirmed):
        converger.toward(step(attempt=1), Goal.GONE, confirm=True)


def test_a_refused_ask_gives_its_run_the_reason(world: World, converger: Converger) -> None:
    refusal = Failure(failure_class=FailureClass.QUOTA, code="VcpuLimitExceeded", message="None left.")
    world.asked(**GONE_FOR_NOTHING, confirmed_gone_at=later(), refusal=refusal)

    converger.toward(step(), Goal.STOPPED, confirm=True)

    assert (world.run.outcome, world.run.failure) == (Outcome.FAILED, refusal)


# -- disks that stay ---------------------------------------------------------------------------------------

GOES = RootVolume(volume_id="vol-1", deleted_on_termination=True)


def told_of_disks(world: World) -> list[str]:
    return [fact.message for fact in world.store.timeline(RUN) if fact.kind == "machine_volume_kept"]


def test_a_disk_that_comes_into_sight_is_recorded_and_no_news(world: World) -> None:
    rented = world.rented()
    world.compute.instances[rented.instance_id or ""].volume = GOES

    once(world)

    assert world.machine.root_volume == GOES
    assert world.told() == []


def test_a_disk_that_was_changed_to_stay_is_told_once(world: World) -> None:
    rented = world.rented(root_volume=GOES)
    world.compute.keep_volume(rented.instance_id or "")

    for _ in range(3):
        once(world)

    (message,) = told_of_disks(world)
    assert "vol-1" in message
    assert "delete the disk by hand" in message
    assert world.told() == ["machine_volume_kept"]


def test_a_released_machine_says_what_it_left_behind(world: World) -> None:
    rented = world.rented(**VERIFIED)
    world.compute.keep_volume(rented.instance_id or "")
    once(world)
    world.compute.let_time_pass()

    once(world)

    assert world.machine.closed
    assert world.machine.left_over_volume == RootVolume(volume_id="vol-1", deleted_on_termination=False)
    released = world.store.timeline(RUN)[-1]
    assert released.kind == "machine_released"
    assert "The disk vol-1 was left behind" in released.message
    assert len(told_of_disks(world)) == 1
