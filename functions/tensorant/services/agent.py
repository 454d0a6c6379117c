"""What machines ask and say: sessions, grants, events, heartbeats and logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tensorant.contract import (
    ARCHIVE_NAME,
    MANIFEST_OBJECT,
    TERMINAL_EVENTS,
    Event,
    EventBatch,
    EventType,
    Grants,
    Heartbeat,
    HeartbeatReply,
    HostJob,
    LogChunk,
    Session,
    TokenExchange,
)
from tensorant.domain.errors import Conflict, Ended, NotFound
from tensorant.domain.machines import Goal, Machine
from tensorant.domain.runs import Phase, Progress
from tensorant.domain.timeline import Fact
from tensorant.domain.tokens import ONE_TIME, SESSION, TokenMint, claim, refused, require_same
from tensorant.domain.waiting import HEARTBEAT_SECONDS
from tensorant.ports import Clock, ObjectStores, RunLogs, Store, Workflow
from tensorant.services.conflicts import CHANGED, until_settled
from tensorant.services.facts import machine_fact
from tensorant.services.signals import beat, signal

GRANTS_LAST = timedelta(hours=1)

PHASES: dict[EventType, Phase] = {
    EventType.BOOTED: Phase.BOOTING,
    EventType.PREFLIGHT_PASSED: Phase.PULLING,
    EventType.IMAGE_PULLED: Phase.PREPARING,
    EventType.STARTED: Phase.PREPARING,
    EventType.STEP: Phase.TRAINING,
    EventType.PACKED: Phase.EXPORTING,
    EventType.UPLOADED: Phase.VERIFYING,
}

EXPORT_MARGIN = timedelta(minutes=2)
"""The trainer is told to end this long before the run's limit, so that it can still say why;
a fifth of the limit where that is less."""


@dataclass(frozen=True)
class Agents:
    store: Store
    storages: ObjectStores
    workflow: Workflow
    logs: RunLogs
    mint: TokenMint
    clock: Clock
    trainer_image: str

    def exchange(self, asked: TokenExchange) -> Session:
        """The first call of a machine: binds its token to its nonce and returns the session.

        The same nonce may ask again and gets the same session, since a reply can get lost. Raises
        `Unauthenticated` for a wrong token, `Conflict` for another nonce, `Ended` once the attempt is over.
        """
        about = claim(asked.token, kind=ONE_TIME)
        machine = self._machine(about.run_id, about.attempt)
        require_same(asked.token, self.mint.one_time(machine))
        _require_wanted(machine)
        machine = until_settled(lambda: self._bind(machine.run_id, machine.attempt, asked.nonce))
        run = self.store.run(machine.run_id)
        deadline_at = run.deadline_at or self.clock.now()
        return Session(
            session_token=self.mint.session(machine, asked.nonce),
            heartbeat_seconds=HEARTBEAT_SECONDS,
            job=HostJob(
                run_id=run.id,
                attempt=machine.attempt,
                image=self.trainer_image,
                deadline_at=deadline_at - min(EXPORT_MARGIN, run.draft.time_limit / 5),
            ),
        )

    def _bind(self, run_id: str, attempt: int, nonce: str) -> Machine:
        machine = self._machine(run_id, attempt)
        _require_wanted(machine)
        if machine.nonce == nonce:
            return machine
        now = self.clock.now()
        if machine.nonce is not None:
            fact = machine_fact(
                machine,
                "token_reused",
                "Another machine showed this machine's token.",
                at=now,
                source="agent",
            )
            self.store.commit(machine, facts=[fact])
            raise Conflict(
                "token_bound",
                "The token belongs to another machine.",
                mend="Look for copies of the user data.",
            )
        bound = machine.bound(nonce)
        self.store.commit(bound, facts=[machine_fact(machine, "machine_connected", at=now, source="agent")])
        return replace(bound, version=machine.version + 1)

    def authenticate(self, session_token: str) -> Machine:
        """The machine whose session this is. Raises `Unauthenticated`, or `Ended` once it is not wanted."""
        about = claim(session_token, kind=SESSION)
        machine = self._machine(about.run_id, about.attempt)
        if machine.nonce is None:
            raise refused()
        require_same(session_token, self.mint.session(machine, machine.nonce))
        _require_wanted(machine)
        return machine

    def _machine(self, run_id: str, attempt: int) -> Machine:
        try:
            return self.store.machine(run_id, attempt)
        except NotFound:
            raise refused() from None

    def grants(self, machine: Machine) -> Grants:
        """The job, and rights for this attempt's objects that last an hour."""
        run = self.store.run(machine.run_id)
        dataset = self.store.dataset_version(run.organization_id, run.draft.dataset_version_id)
        storage = self.storages.open(self.store.connection(run.organization_id, run.storage_connection_id))
        prefix = run.prefix(machine.attempt)
        return Grants(
            spec=run.spec,
            attempt=machine.attempt,
            dataset_url=storage.presign_get(dataset.key, lasting=GRANTS_LAST),
            archive_put_url=storage.presign_put(prefix + ARCHIVE_NAME, lasting=GRANTS_LAST),
            manifest_put_url=storage.presign_put(prefix + MANIFEST_OBJECT, lasting=GRANTS_LAST),
            expires_at=self.clock.now() + GRANTS_LAST,
        )

    def report(self, machine: Machine, batch: EventBatch) -> int:
        """Take events; each counts once however often it is sent. Returns how many were new."""
        new = [event for event in batch.events if self._take(machine, event)]
        terminal = [event for event in batch.events if event.type in TERMINAL_EVENTS]
        for event in terminal:  # last: whoever sees the end must see the steps before it
            self.store.save_terminal_event(machine.run_id, machine.attempt, event)
        self._beat(machine)
        if terminal:
            signal(machine.run_id, store=self.store, workflow=self.workflow)
        return len(new)

    def _take(self, machine: Machine, event: Event) -> bool:
        self._advance(machine, lambda progress, now: advanced(progress, event, now))
        if event.type is EventType.STEP:
            return True
        fact = Fact(
            run_id=machine.run_id,
            id=f"{event.source}-{machine.attempt}-{event.seq}",
            at=self.clock.now(),
            kind=event.type,
            source=event.source,
            message=f"{event.code}: {event.message}" if event.code else event.message,
            attempt=machine.attempt,
        )
        try:
            self.store.commit(facts=[fact])
        except Conflict as conflict:
            if conflict.code != CHANGED:
                raise
            return False
        return True

    def heartbeat(self, machine: Machine, beat_: Heartbeat) -> HeartbeatReply:
        """The machine lives: remember it, and extend the workflow's wait."""
        self._advance(
            machine,
            lambda progress, now: replace(
                progress,
                heard_at=now,
                step=beat_.step if beat_.step is not None else progress.step,
                steps_total=beat_.steps_total or progress.steps_total,
                loss=beat_.loss if beat_.loss is not None else progress.loss,
                seconds_left=beat_.seconds_left if beat_.seconds_left is not None else progress.seconds_left,
            ),
        )
        self._beat(machine)
        return HeartbeatReply(stop=False, uploads_wanted=machine.delivery.uploads_wanted)

    def log(self, machine: Machine, chunk: LogChunk) -> None:
        self.logs.append(machine.run_id, machine.attempt, chunk.source, chunk.lines, at=self.clock.now())

    def _beat(self, machine: Machine) -> None:
        beat(machine.run_id, store=self.store, workflow=self.workflow)

    def _advance(self, machine: Machine, change: Callable[[Progress, datetime], Progress]) -> None:
        progress = self.store.progress(machine.run_id) or Progress(run_id=machine.run_id)
        if progress.attempt != machine.attempt:
            progress = Progress(run_id=machine.run_id, attempt=machine.attempt)
        self.store.save_progress(change(progress, self.clock.now()))


def _require_wanted(machine: Machine) -> None:
    if machine.closed or machine.goal is not Goal.RUN:
        raise Ended(
            "attempt_over",
            f"Attempt {machine.attempt} of {machine.run_id} is over.",
            mend="End the trainer.",
        )


def advanced(progress: Progress, event: Event, now: datetime) -> Progress:
    """Progress after an event of its machine."""
    loss = event.loss if event.loss is not None else progress.loss
    return replace(
        progress,
        heard_at=now,
        phase=PHASES.get(event.type, progress.phase),
        step=event.step if event.step is not None else progress.step,
        steps_total=event.steps_total or progress.steps_total,
        first_loss=progress.first_loss if progress.first_loss is not None else event.loss,
        loss=loss,
        seconds_left=event.seconds_left if event.seconds_left is not None else progress.seconds_left,
    )
