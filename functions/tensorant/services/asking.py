"""Asking a provider for a machine: recorded before, repeated identically, one candidate at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from tensorant.boot.render import BootParameters, user_data
from tensorant.domain.connections import AwsSettings, Connection
from tensorant.domain.errors import DOUBTFUL, Configuration, FailureClass, Price, ProviderError
from tensorant.domain.failures import NEXT_CANDIDATE, Failure
from tensorant.domain.machines import Candidate, LaunchParameters, Machine
from tensorant.domain.quotes import Quote
from tensorant.domain.runs import Phase, Progress, Run
from tensorant.domain.steps import Next, Step
from tensorant.domain.tokens import PLACEHOLDER, TokenMint
from tensorant.domain.waiting import patience
from tensorant.ports import Clock, Compute, Computes, Store
from tensorant.services.conclusions import SOURCE, fail
from tensorant.services.conflicts import until_settled
from tensorant.services.converge import record
from tensorant.services.drafts import ready_compute
from tensorant.services.facts import machine_fact, told
from tensorant.services.quotes import current_quote, disk_gib

RECOVERY_WINDOW_SECONDS = 2 * 3600
"""How long a restarted machine stays up for its owner to fetch the archive."""

RELEASE_WAIT_SECONDS = 1800
"""How long a host that is done waits for its release before it stops itself."""

MIN_FREE_DISK_GIB = 20

NONE_LEFT = Failure(
    failure_class=FailureClass.CAPACITY,
    code="no_candidate_left",
    message="No acceptable GPU type could be had in the connection's subnets.",
    mend="Allow other GPU types, add a subnet in another zone, or launch again later.",
)


@dataclass(frozen=True)
class Asker:
    """The workflow's step LaunchMachine: one candidate per turn."""

    store: Store
    computes: Computes
    mint: TokenMint
    clock: Clock
    agent_url: str
    deployment_id: str

    def ask(self, step: Step) -> Step:
        """Ask for the run's present candidate, or put the question again if its answer is in doubt.

        Raises `Throttled` and `ProviderFault`: the step is repeated with the same record. A definite
        refusal closes the ask; the next turn takes the next candidate, or the run ends.
        """
        run = self.store.run(step.run_id)
        if run.outcome is not None:
            return replace(step, next=Next.STOP, attempt=run.attempt)
        connection = ready_compute(run.organization_id, run.draft.connection_id, store=self.store)
        compute = self.computes.open(connection)
        try:
            machine = until_settled(lambda: self._intent(run.id, connection, compute))
        except DOUBTFUL:
            raise
        except ProviderError as error:
            return self._end(step, Failure.of(error))
        if machine is None:
            return self._end(step, NONE_LEFT)
        return self._put(step, machine, compute)

    def _put(self, step: Step, machine: Machine, compute: Compute) -> Step:
        """Put the question, unless it has been answered."""
        step = replace(step, attempt=machine.attempt)
        if machine.instance_id is None:
            try:
                seen = compute.ask(machine, user_data=self._user_data(machine))
            except DOUBTFUL:
                raise
            except ProviderError as error:
                return self._refused(step, Failure.of(error))
            until_settled(
                lambda: record(
                    self.store.machine(machine.run_id, machine.attempt),
                    seen,
                    store=self.store,
                    clock=self.clock,
                )
            )
        return self._await(step)

    def _intent(self, run_id: str, connection: Connection, compute: Compute) -> Machine | None:
        """The open ask of the run, or a new one; None if no candidate is left. Stored before asking."""
        run, now = self.store.run(run_id), self.clock.now()
        if run.attempt:
            machine = self.store.machine(run_id, run.attempt)
            if not machine.closed:
                return self._again(machine, now)
        if not isinstance(connection.settings, AwsSettings):
            raise Configuration("not_aws", "The connection is not to AWS.", mend="Choose an AWS connection.")
        candidate = run.next_candidate(connection.settings.subnet_ids)
        if candidate is None:
            return None
        quote = self._quoted(run, candidate, connection, compute)
        machine = self._machine(run, candidate, connection, quote, now)
        ask = f"{candidate.instance_type} in {candidate.subnet_id}"
        self.store.commit(
            run.asking(machine.attempt),
            machine,
            facts=[machine_fact(machine, "machine_asked", ask, at=now, source=SOURCE)],
        )
        self.store.save_progress(Progress(run_id=run_id, attempt=machine.attempt, phase=Phase.BOOTING))
        return replace(machine, version=1)

    def _again(self, machine: Machine, now: datetime) -> Machine:
        """The lease of an unanswered ask runs from the last time the question is put."""
        if machine.instance_id is None:
            self.store.commit(machine.asked_again(at=now))
            return replace(machine.asked_again(at=now), version=machine.version + 1)
        return machine

    def _quoted(self, run: Run, candidate: Candidate, connection: Connection, compute: Compute) -> Quote:
        """The claim's quote holds for its type; another type is priced before it is asked for."""
        if run.quote is not None and run.quote.instance_type == candidate.instance_type:
            return run.quote
        quote = current_quote(
            run.draft, candidate.instance_type, connection, compute=compute, clock=self.clock
        )
        quote.require_within(run.draft.price_limit_usd_per_hour)
        return quote

    def _machine(
        self, run: Run, candidate: Candidate, connection: Connection, quote: Quote, now: datetime
    ) -> Machine:
        attempt = run.attempt + 1
        return Machine(
            run_id=run.id,
            attempt=attempt,
            organization_id=run.organization_id,
            connection_id=connection.id,
            account_id=connection.account_id or "",
            candidate=candidate,
            parameters=self._parameters(run, attempt, connection, now),
            quote=quote,
            asked_at=now,
        )

    def _parameters(self, run: Run, attempt: int, connection: Connection, now: datetime) -> LaunchParameters:
        settings, image = connection.settings, connection.image
        if not isinstance(settings, AwsSettings) or image is None or run.deadline_at is None:
            raise Configuration(
                "connection_not_checked",
                f"The connection {connection.name} has not passed its check.",
                mend="Check the connection and mend what it reports.",
            )
        return LaunchParameters(
            region=settings.region,
            image_id=settings.image_id,
            root_device=image.root_device,
            other_devices=image.other_devices,
            disk_gib=disk_gib(run.draft, connection),
            security_group_id=settings.security_group_id,
            key_name=settings.key_name,
            instance_profile_arn=settings.instance_profile_arn,
            user_data=self._boot(run, attempt, seconds=int((run.deadline_at - now).total_seconds())),
            tags={
                "Name": f"tensorant {run.id}",
                "tensorant:managed": "true",
                "tensorant:deployment": self.deployment_id,
                "tensorant:run": run.id,
                "tensorant:attempt": str(attempt),
            },
        )

    def _boot(self, run: Run, attempt: int, *, seconds: int) -> str:
        if seconds <= 0:
            raise Price("time_limit", "The run's time limit passed before a machine could be asked for.")
        return user_data(
            BootParameters(
                agent_url=f"{self.agent_url.rstrip('/')}/agent/v1",
                token=PLACEHOLDER,
                run_id=run.id,
                attempt=attempt,
                deadline_seconds=seconds,
                recovery_window_seconds=RECOVERY_WINDOW_SECONDS,
                release_wait_seconds=RELEASE_WAIT_SECONDS,
                min_free_disk_gib=MIN_FREE_DISK_GIB,
            )
        )

    def _user_data(self, machine: Machine) -> str:
        return machine.parameters.user_data.replace(PLACEHOLDER, self.mint.one_time(machine))

    def _refused(self, step: Step, failure: Failure) -> Step:
        """Close the ask: the provider made nothing. Another candidate may do, or the run ends."""
        another = failure.failure_class in NEXT_CANDIDATE

        def close() -> None:
            run, now = self.store.run(step.run_id), self.clock.now()
            machine = self.store.machine(step.run_id, step.attempt)
            fact = machine_fact(machine, "machine_refused", told(failure), at=now, source="provider")
            self.store.commit(run.refusing(machine.candidate), machine.refused(failure, at=now), facts=[fact])

        until_settled(close)
        return replace(step, next=Next.LAUNCH) if another else self._end(step, failure)

    def _end(self, step: Step, failure: Failure) -> Step:
        until_settled(lambda: fail(self.store.run(step.run_id), failure, store=self.store, clock=self.clock))
        return replace(step, next=Next.END)

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
