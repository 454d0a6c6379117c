"""Launching a run: recorded once, started once, and checked again before anything is rented."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorant.domain.errors import DOUBTFUL, Conflict, ProviderError, Rejected
from tensorant.domain.failures import Failure
from tensorant.domain.identity import Actor
from tensorant.domain.quotes import Quote
from tensorant.domain.runs import Progress, Run
from tensorant.domain.steps import Next, Step
from tensorant.ports import Clock, Computes, Store, Workflow
from tensorant.services.access import run_of
from tensorant.services.conclusions import SOURCE, fail, failure_of
from tensorant.services.conflicts import until_settled
from tensorant.services.drafts import ready_compute, ready_storage
from tensorant.services.facts import run_fact
from tensorant.services.quotes import current_quotes, first_within


@dataclass(frozen=True)
class Launches:
    """The person's side."""

    store: Store
    workflow: Workflow
    clock: Clock

    def launch(self, actor: Actor, organization_id: str, run_id: str) -> Run:
        """Record the launch, then start its execution. Both may be repeated: the second is the first.

        A launch that was recorded and not started (the process died in between) is started by the next
        call.
        """
        run = until_settled(lambda: self._recorded(actor, organization_id, run_id))
        if run.outcome is None:
            self.workflow.start(run)
        return run

    def _recorded(self, actor: Actor, organization_id: str, run_id: str) -> Run:
        run = run_of(organization_id, run_id, actor, store=self.store)
        if run.launched_at is not None:
            return run
        if run.outcome is not None:
            raise Conflict(
                "run_ended", f"The run {run_id} has been {run.outcome}.", mend="Draft another run to launch."
            )
        now = self.clock.now()
        launched = run.launched(actor.subject, at=now)
        self.store.commit(launched, facts=[run_fact(run, "run_launched", at=now, source=actor.subject)])
        return launched


@dataclass(frozen=True)
class Validator:
    """The workflow's step ValidateRun."""

    store: Store
    computes: Computes
    clock: Clock

    def claim(self, step: Step) -> Step:
        """Check again what can have changed since the draft, and take the run for this execution.

        From here the run's time limit runs. A refusal ends the run; nothing has been rented.
        """
        run = self.store.run(step.run_id)
        if run.outcome is not None:
            return replace(step, next=Next.END)
        if run.claimed:
            return replace(step, next=Next.LAUNCH)
        try:
            quote = self._rechecked(run)
        except DOUBTFUL:
            raise
        except (ProviderError, Rejected) as error:
            failure = failure_of(error)
            return replace(step, next=until_settled(lambda: self._refuse(run.id, failure)))
        until_settled(lambda: self._claim(run.id, quote))
        return replace(step, next=Next.LAUNCH)

    def _rechecked(self, run: Run) -> Quote:
        """The quote of the first acceptable type inside the price limit."""
        connection = ready_compute(run.organization_id, run.draft.connection_id, store=self.store)
        storage = ready_storage(run.organization_id, run.storage_connection_id, store=self.store)
        needed_until = run.credentials_needed_until(self.clock.now())
        connection.require_credentials_until(needed_until)
        storage.require_credentials_until(needed_until, named_by="project_id")
        compute = self.computes.open(connection)
        quotes = current_quotes(run.draft, connection, compute=compute, clock=self.clock)
        return first_within(quotes, run.draft.price_limit_usd_per_hour)

    def _refuse(self, run_id: str, failure: Failure) -> Next:
        """A run that was claimed meanwhile, beside a call that had timed out, is not this one's to end."""
        run = self.store.run(run_id)
        if run.claimed:
            return Next.LAUNCH
        fail(run, failure, store=self.store, clock=self.clock)
        return Next.END

    def _claim(self, run_id: str, quote: Quote) -> None:
        run, now = self.store.run(run_id), self.clock.now()
        if run.claimed or run.outcome is not None:
            return
        price = f"${quote.usd_per_hour} an hour for {quote.instance_type} with {quote.disk_gib} GiB."
        self.store.commit(
            run.claim(quote, at=now), facts=[run_fact(run, "run_validated", price, at=now, source=SOURCE)]
        )
        self.store.save_progress(Progress(run_id=run_id))
