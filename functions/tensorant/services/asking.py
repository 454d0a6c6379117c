"""Asking a provider for a machine: recorded before, repeated identically, one candidate at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorant.domain.connections import Connection
from tensorant.domain.errors import DOUBTFUL, ProviderError, Rejected
from tensorant.domain.failures import NEXT_CANDIDATE, Failure
from tensorant.domain.machines import Disposition, Goal, Machine
from tensorant.domain.runs import Outcome, Phase, Progress, Run
from tensorant.domain.steps import Next, Step
from tensorant.domain.tokens import PLACEHOLDER, TokenMint
from tensorant.domain.waiting import patience
from tensorant.ports import Clock, Compute, Computes, Store
from tensorant.services.candidates import Choice, Choices
from tensorant.services.conclusions import SOURCE, fail, failure_of, give_up
from tensorant.services.conflicts import CHANGED, until_settled
from tensorant.services.converge import converge, record
from tensorant.services.drafts import ready_compute
from tensorant.services.facts import machine_fact, run_fact, told


@dataclass(frozen=True)
class Asker:
    """The workflow's step LaunchMachine: one candidate per turn."""

    store: Store
    computes: Computes
    mint: TokenMint
    clock: Clock
    choices: Choices

    def ask(self, step: Step) -> Step:
        """Ask for the run's present candidate, or put the question again if its answer is in doubt.

        Raises `Throttled` and `ProviderFault`: the step is repeated with the same record. A definite
        refusal closes the ask; the next turn takes the next candidate, or the run ends.
        """
        try:
            asked = until_settled(lambda: self._intent(step.run_id))
        except DOUBTFUL:
            raise
        except (ProviderError, Rejected) as error:
            if error.code == CHANGED:
                raise
            return self._end(step, failure_of(error))
        if asked is None:
            return replace(step, next=Next.STOP, attempt=self.store.run(step.run_id).attempt)
        machine, compute = asked
        step = replace(step, attempt=machine.attempt)
        if machine.goal is not Goal.RUN:
            return replace(step, next=_toward(machine))
        return self._put(step, machine, compute)

    # -- the intent --------------------------------------------------------------------------------------

    def _intent(self, run_id: str) -> tuple[Machine, Compute] | None:
        """The open ask of the run, or a new one, stored before asking; None if the run has ended.

        Conditioned on the versions of the run and, for a new ask, of its connection: whoever ends the run,
        or changes or removes the connection meanwhile, makes this start again. Raises a provider error if
        no candidate is left.
        """
        run = self.store.run(run_id)
        still_open = next((each for each in self.store.machines(run_id) if not each.closed), None)
        if still_open is not None:
            compute = self._compute_of(still_open)
            return self._again(run, still_open), compute
        if not run.under_way:
            return None
        connection = ready_compute(run.organization_id, run.draft.connection_id, store=self.store)
        connection.require_credentials_until(run.credentials_needed_until(self.clock.now()))
        compute = self.computes.open(connection)
        catalog = self.store.catalog(connection.id)
        choice = self.choices.next(run, connection, catalog, compute=compute)
        return self._new(choice, connection), compute

    def _compute_of(self, machine: Machine) -> Compute:
        """An open ask is put again whatever the connection's last check says."""
        return self.computes.open(self.store.connection(machine.organization_id, machine.connection_id))

    def _again(self, run: Run, machine: Machine) -> Machine:
        """The lease of an unanswered ask runs from the last time the question is put."""
        if machine.instance_id is not None or machine.goal is not Goal.RUN:
            return machine
        again = machine.asked_again(at=self.clock.now())
        self.store.commit(run, again)
        return replace(again, version=machine.version + 1)

    def _new(self, choice: Choice, connection: Connection) -> Machine:
        run, machine = choice.run, choice.machine
        ask = f"{machine.candidate.instance_type} in {machine.candidate.subnet_id}"
        fact = machine_fact(machine, "machine_asked", ask, at=machine.asked_at, source=SOURCE)
        self.store.commit(run.asking(machine.attempt), machine, facts=[fact], unchanged=[connection])
        self.store.save_progress(Progress(run_id=run.id, attempt=machine.attempt, phase=Phase.BOOTING))
        return replace(machine, version=1)

    # -- the question ------------------------------------------------------------------------------------

    def _put(self, step: Step, machine: Machine, compute: Compute) -> Step:
        """Put the question, unless it has been answered."""
        if machine.instance_id is None:
            try:
                seen = compute.ask(machine, user_data=self._user_data(machine))
            except DOUBTFUL:
                raise
            except ProviderError as error:
                return self._refused(step, Failure.of(error))
            machine = until_settled(
                lambda: record(
                    self.store.machine(step.run_id, step.attempt), seen, store=self.store, clock=self.clock
                )
            )
        if machine.goal is not Goal.RUN:
            return self._unwanted(step, compute)
        return self._await(step)

    def _user_data(self, machine: Machine) -> str:
        return machine.parameters.user_data.replace(PLACEHOLDER, self.mint.one_time(machine))

    def _unwanted(self, step: Step, compute: Compute) -> Step:
        """The answer came after the run had been given up: this call may be the last that knows of it."""
        machine = until_settled(
            lambda: converge(
                self.store.machine(step.run_id, step.attempt),
                compute=compute,
                store=self.store,
                clock=self.clock,
            )
        )
        return replace(step, next=_toward(machine))

    # -- the answer --------------------------------------------------------------------------------------

    def _refused(self, step: Step, failure: Failure) -> Step:
        """A refusal of the only ask is definite; one of a repeated ask says nothing of the ask before.

        Then the machine is to go, and the workflow waits for the provider's word, or for the lease and an
        empty look-up.
        """
        another = failure.failure_class in NEXT_CANDIDATE

        def close() -> Machine:
            run, machine = self.store.run(step.run_id), self.store.machine(step.run_id, step.attempt)
            speaks = machine.nonce is not None  # an earlier ask made it: it is found by its token
            if machine.closed or machine.goal is Goal.GONE or speaks:
                return machine
            now = self.clock.now()
            fact = machine_fact(machine, "machine_refused", told(failure), at=now, source="provider")
            definite = machine.asks == 1 and machine.instance_id is None
            closed = (
                machine.refused(failure, at=now)
                if definite
                else replace(machine.raised(Goal.GONE, Disposition.NOTHING_TO_KEEP), refusal=failure)
            )
            refused = run.refusing(machine.candidate)
            facts = [fact]
            if not another:
                refused = refused.ended(Outcome.FAILED, at=now, failure=failure)
                facts.append(run_fact(run, "run_failed", told(failure), at=now, source=SOURCE))
            self.store.commit(refused, closed, facts=facts)
            return closed

        machine = until_settled(close)
        if machine.goal is Goal.RUN:
            return self._await(step)
        if not machine.closed:
            return replace(step, next=_toward(machine))
        return replace(step, next=Next.LAUNCH if another else Next.END)

    def _end(self, step: Step, failure: Failure) -> Step:
        """End the run. An ask that is still open may yet have made a machine: it is given up with it."""
        machine = until_settled(lambda: self._give_up(step.run_id, failure))
        if machine is None:
            return replace(step, next=Next.END)
        return replace(step, attempt=machine.attempt, next=_toward(machine))

    def _give_up(self, run_id: str, failure: Failure) -> Machine | None:
        """The run's open machine, its goal raised; None if there is none."""
        run = self.store.run(run_id)
        machine = self.store.machine(run_id, run.attempt) if run.attempt else None
        if machine is None or machine.closed:
            fail(run, failure, store=self.store, clock=self.clock)
            return None
        if machine.goal is Goal.RUN:
            give_up(run, machine, failure, store=self.store, clock=self.clock)
            machine = self.store.machine(run_id, run.attempt)
        return machine

    def _await(self, step: Step) -> Step:
        run = self.store.run(step.run_id)
        now = self.clock.now()
        wait = patience(now, deadline_at=run.deadline_at or now, has_spoken=False)
        return replace(
            step,
            next=Next.AWAIT,
            signal=0,
            heartbeat_seconds=wait.heartbeat_seconds,
            timeout_seconds=wait.timeout_seconds,
        )


def _toward(machine: Machine) -> Next:
    return Next.RELEASE if machine.goal is Goal.GONE else Next.STOP
