"""Ending a run by hand: cancel at any moment, discard what was kept, ask for its release again."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorant.domain.errors import Conflict, Invalid
from tensorant.domain.identity import Actor
from tensorant.domain.machines import Disposition, Goal, Machine
from tensorant.domain.runs import Outcome, Run
from tensorant.domain.timeline import Fact
from tensorant.ports import Clock, Store, Workflow
from tensorant.services.access import run_of
from tensorant.services.conclusions import has_started
from tensorant.services.conflicts import until_settled
from tensorant.services.facts import machine_fact, run_fact
from tensorant.services.signals import signal


@dataclass(frozen=True)
class Cancellations:
    store: Store
    workflow: Workflow
    clock: Clock

    def cancel(
        self, actor: Actor, organization_id: str, run_id: str, *, keep_output: bool | None = None
    ) -> Run:
        """End a run, a launch in flight included; its machine's goal is raised in the same transaction.

        Where there may be output, `keep_output` must say whether its disk is kept (raises `Invalid`
        otherwise). Cancelling again changes nothing; a run that ended by itself stays as it is (`Conflict`).
        """
        run = until_settled(lambda: self._cancel(actor, organization_id, run_id, keep_output))
        self._carry_out(run)
        return run

    def discard(self, actor: Actor, organization_id: str, run_id: str) -> Run:
        """Give up what a run left on its machine's disk, and release the machine."""
        run = until_settled(lambda: self._discard(actor, organization_id, run_id))
        self._carry_out(run)
        return run

    def retry_release(self, actor: Actor, organization_id: str, run_id: str) -> Run:
        """Ask again for a release that is pending. Raises `Conflict` if none is."""
        run = until_settled(lambda: self._retry(actor, organization_id, run_id))
        self._carry_out(run)
        return run

    def _carry_out(self, run: Run) -> None:
        """The recorded execution is started (once, however often), and a waiting one is woken."""
        if run.launched_at is None:
            return
        signal(run.id, store=self.store, workflow=self.workflow)
        self.workflow.start(run)

    def _cancel(self, actor: Actor, organization_id: str, run_id: str, keep_output: bool | None) -> Run:  # noqa: FBT001 - handed through
        run = run_of(organization_id, run_id, actor, store=self.store)
        if run.outcome is Outcome.CANCELLED:
            return run
        if run.outcome is Outcome.NEEDS_RECOVERY:
            if keep_output is None and run.cancelled_at is not None:
                return run
            return self._discard(actor, organization_id, run_id) if self._asked(keep_output) else run
        if run.outcome is not None:
            raise _ended(run)
        machine = self._open_machine(run)
        if machine is None:
            return self._end(actor, run)
        if not self._may_have_output(machine, keep_output):
            return self._end_with(actor, run, machine, output=False, keep=False)
        return self._end_with(actor, run, machine, output=True, keep=not self._asked(keep_output))

    def _may_have_output(self, machine: Machine, keep_output: bool | None) -> bool:  # noqa: FBT001 - handed through
        """The first step may be done before the word of it arrives: a trainer that was started counts, and of
        any machine that has come into contact a person's own word.
        """
        contacted = machine.nonce is not None and keep_output is not None
        return contacted or has_started(machine, store=self.store)

    def _asked(self, keep_output: bool | None) -> bool:  # noqa: FBT001 - handed through
        """Whether the output is to be discarded. Raises `Invalid` where nothing was said."""
        if keep_output is None:
            raise Invalid(
                "keep_output_required",
                "The run may have output on its machine's disk.",
                mend="Say keep_output: true to keep the disk for recovery, false to discard it.",
                field="keep_output",
            )
        return not keep_output

    def _open_machine(self, run: Run) -> Machine | None:
        if not run.attempt:
            return None
        machine = self.store.machine(run.id, run.attempt)
        return None if machine.closed else machine

    def _end(self, actor: Actor, run: Run) -> Run:
        now = self.clock.now()
        ended = run.cancelled(at=now, keep=False)
        self.store.commit(ended, facts=[run_fact(run, "run_cancelled", at=now, source=actor.subject)])
        return replace(ended, version=run.version + 1)

    def _end_with(self, actor: Actor, run: Run, machine: Machine, *, output: bool, keep: bool) -> Run:
        now = self.clock.now()
        ended = run.cancelled(at=now, keep=keep)
        if keep:
            raised = machine.raised(Goal.STOPPED)
        else:
            raised = machine.raised(
                Goal.GONE, Disposition.DISCARDED if output else Disposition.NOTHING_TO_KEEP
            )
        kept = "Its output is kept." if keep else "Nothing is kept."
        self.store.commit(
            ended,
            raised,
            facts=[
                run_fact(run, "run_cancelled", kept, at=now, source=actor.subject),
                self._goal_fact(actor, machine, raised),
            ],
        )
        return replace(ended, version=run.version + 1)

    def _discard(self, actor: Actor, organization_id: str, run_id: str) -> Run:
        run = run_of(organization_id, run_id, actor, store=self.store)
        if run.outcome is not Outcome.NEEDS_RECOVERY:
            raise Conflict(
                "nothing_to_discard",
                f"The run {run_id} keeps no output.",
                mend="Cancel a run that is under way; one that has ended keeps nothing.",
            )
        now = self.clock.now()
        machine = self.store.machine(run.id, run.attempt)
        raised = machine.raised(Goal.GONE, Disposition.DISCARDED)
        ended = run.cancelled(at=now, keep=False).releasing()
        facts = [run_fact(run, "output_discarded", at=now, source=actor.subject)]
        self.store.commit(ended, raised, facts=[*facts, self._goal_fact(actor, machine, raised)])
        return replace(ended, version=run.version + 1)

    def _retry(self, actor: Actor, organization_id: str, run_id: str) -> Run:
        run = run_of(organization_id, run_id, actor, store=self.store)
        machine = self._open_machine(run)
        if machine is None or machine.goal is not Goal.GONE or run.under_way:
            raise Conflict(
                "no_release_pending",
                f"The run {run_id} has no release pending.",
                mend="Cancel the run or discard its output to release its machine.",
            )
        now = self.clock.now()
        again = run.releasing()
        self.store.commit(again, facts=[run_fact(run, "release_asked_again", at=now, source=actor.subject)])
        return replace(again, version=run.version + 1)

    def _goal_fact(self, actor: Actor, machine: Machine, raised: Machine) -> Fact:
        what = f"goal_{raised.goal.name.lower()}"
        why = f"Disposition: {raised.disposition}." if raised.disposition else "Its disk is kept."
        return machine_fact(machine, what, why, at=self.clock.now(), source=actor.subject)


def _ended(run: Run) -> Conflict:
    return Conflict(
        "run_ended",
        f"The run {run.id} has {run.outcome} already.",
        mend="Nothing to do: its outcome is final.",
    )
