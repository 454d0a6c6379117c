"""What the simulator found, each as the smallest case that shows it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tensorant.domain.errors import Credentials, FailureClass
from tensorant.domain.machines import Disposition, Goal, Observation, Seen
from tensorant.domain.runs import Outcome, Phase, Progress
from tensorant.domain.steps import Next
from tensorant.domain.verdicts import Evidence, judge
from tensorant.services.asking import Asker
from tensorant.services.cancel import Cancellations
from tensorant.services.candidates import Choices
from tensorant.services.launch import Validator
from tests.support.worlds import MEMBER, ORG, QUOTE, RUN, World, later, machine, step

EXPIRED = Credentials("ExpiredToken", "They have expired.")


@pytest.fixture
def world() -> World:
    return World().settle()


def test_a_run_that_ends_while_its_ask_is_open_gives_that_ask_up(world: World) -> None:
    """Else a machine that the ask had made was kept by nobody: its goal was still to run."""
    world.asked()
    world.computes.trouble = EXPIRED
    choices = Choices(world.clock, "https://api.example/", "dep-1")
    asker = Asker(world.store, world.computes, world.mint, world.clock, choices)

    answer = asker.ask(step())

    assert (answer.next, answer.attempt) == (Next.RELEASE, 1)
    assert world.run.outcome is Outcome.FAILED
    assert (world.machine.goal, world.machine.closed) == (Goal.GONE, False)


def test_a_validation_that_timed_out_does_not_end_the_run_that_its_retry_has_claimed(world: World) -> None:
    world.launched()

    class Late:
        """The retry claims the run before this call's credentials are refused."""

        def open(self, _connection: object) -> object:
            world.change_run(claimed=True, quote=QUOTE, deadline_at=later(hours=2))
            raise EXPIRED

    validator = Validator(world.store, Late(), world.clock)  # type: ignore[arg-type]

    assert validator.claim(step()).next is Next.LAUNCH
    assert world.run.outcome is None


def test_a_restart_that_nobody_saw_running_is_counted_from_its_own_start() -> None:
    """Else it ended, on record, before it began, and cost a minute."""
    stopped = machine(instance_id="i-1", started_at=later(minutes=1)).observed(
        Observation(state=Seen.STOPPED, started_at=later(minutes=1)), at=later(minutes=30)
    )

    again = stopped.observed(Observation(state=Seen.STOPPED, started_at=later(hours=1)), at=later(hours=3))

    assert (again.started_at, again.ran_until) == (later(hours=1), later(hours=3))
    assert again.ran_seconds_before == timedelta(minutes=29).total_seconds()


def test_silence_after_the_machine_had_its_session_keeps_what_there_may_be() -> None:
    silent = Evidence(
        machine=machine(instance_id="i-1", seen=Seen.RUNNING, nonce="n" * 32),
        now=later(minutes=11),
        deadline_at=later(hours=2),
        heard_at=None,
        terminal_event=None,
        finished=False,
    )

    verdict = judge(silent)

    assert verdict.next is Next.STOP
    assert verdict.failure is not None
    assert verdict.failure.failure_class is FailureClass.PROVIDER_FAULT


@pytest.mark.parametrize(
    ("keep", "goal", "disposition"),
    [(True, Goal.STOPPED, None), (False, Goal.GONE, Disposition.DISCARDED)],
)
def test_a_persons_word_on_output_counts_though_no_step_was_reported(
    *, world: World, keep: bool, goal: Goal, disposition: Disposition | None
) -> None:
    world.rented(nonce="n" * 32)
    world.store.save_progress(Progress(run_id=RUN, attempt=1, phase=Phase.PULLING))

    Cancellations(world.store, world.workflow, world.clock).cancel(MEMBER, ORG, RUN, keep_output=keep)

    assert (world.machine.goal, world.machine.disposition) == (goal, disposition)
