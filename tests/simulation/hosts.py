"""Machines as seen from inside: boot, dead-man switch, one training, heartbeats, upload, and their failures.

A host follows functions/tensorant/boot: the deadline is armed first at every boot, a training is started
once, and a host that is done waits for its release and then turns itself off.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from random import Random
from typing import Literal, Protocol

from tensorant.contract import (
    ARCHIVE_NAME,
    MANIFEST_OBJECT,
    Event,
    EventBatch,
    EventType,
    Grants,
    Heartbeat,
    HeartbeatReply,
    JobSpec,
    Session,
    TokenExchange,
    TrainerExit,
)
from tensorant.domain.machines import Machine, Seen
from tensorant.services.agent import Agents
from tests.simulation.books import Rented
from tests.simulation.scheduler import Scheduler
from tests.simulation.uploads import Flavour, built

Source = Literal["host", "trainer"]
TOKEN = re.compile(r"tt1\.[A-Za-z0-9._-]+")
DEADLINE = re.compile(r'- tensorant-deadline\n\s+- "(\d+)"\n\s+- "(\d+)"')
CONTACT_SECONDS = 600.0
RELEASE_WAIT_SECONDS = 1800.0
REPORT_PAUSES = (5.0, 10.0, 20.0, 40.0)


class Fate(StrEnum):
    """What becomes of a machine's only training."""

    GOOD = "good"
    PREFLIGHT = "preflight"
    PULL = "pull"
    FAILS = "fails"
    KILLED = "killed"
    HANGS = "hangs"
    """It says nothing more; its dead-man switch still works."""
    FROZEN = "frozen"
    """It says nothing more, and its dead-man switch does not work either."""
    RUNAWAY = "runaway"
    """It trains on for ever and says so, and its dead-man switch does not work."""
    NEVER_BOOTS = "never_boots"
    DIES = "dies"
    """The provider loses it."""
    POWERS_OFF = "powers_off"
    SILENT_END = "silent_end"
    """Everything is uploaded, and the word of it never sent."""


@dataclass(frozen=True)
class Plan:
    fate: Fate
    flavour: Flavour
    boot_seconds: float
    pull_seconds: float
    train_seconds: float
    fails_after: float
    exit: TrainerExit
    clock_error: float

    def flavour_of(self, upload: int) -> Flavour:
        """Most of what arrives damaged arrives whole the next time."""
        return self.flavour if upload == 1 or self.fails_after > 0.7 else Flavour.SOUND

    @classmethod
    def drawn(cls, random: Random) -> Plan:
        fates = [Fate.GOOD] * 8 + [Fate.FAILS] * 2 + list(Fate)
        return cls(
            fate=random.choice(fates),
            flavour=random.choice([Flavour.SOUND] * 6 + list(Flavour)),
            boot_seconds=random.choice([10, 30, 90, 400]),
            pull_seconds=random.choice([5, 60, 240]),
            train_seconds=random.choice([60, 600, 1800, 7200]),
            fails_after=random.random(),
            exit=random.choice(list(TrainerExit)),
            clock_error=random.choice([0, 0, 0, -300, 86400]),
        )


class Outside(Protocol):
    """What a host reaches."""

    agents: Agents

    def request(self, call: Callable[[], object]) -> object:
        """One HTTPS request to the agent API. Raises `Unreachable` or `Refused`."""
        ...

    def put_object(self, key: str, content: bytes) -> None: ...
    def archive_put(self, run_id: str, attempt: int, flavour: Flavour) -> None: ...
    def power_off(self, rented: Rented) -> None: ...
    def lose(self, rented: Rented) -> None: ...


class Unreachable(Exception):
    """No answer, or a server's error: try again."""


class Refused(Exception):
    """The control plane does not want this machine."""


class Off(Exception):
    """The machine has no power any more."""


@dataclass(eq=False)
class Host:
    """The disk outlives a stop: nonce, marker and what was trained stay."""

    rented: Rented
    plan: Plan
    scheduler: Scheduler
    outside: Outside
    nonce: str
    trained: bool = False
    """A first step was done: there may be something to keep."""
    trained_at: float = 0.0
    finished: bool = False
    uploaded: Flavour | None = None
    switch_works: bool = True
    _boot: int = 0
    _numbers: dict[str, int] = field(default_factory=dict)
    _session: Session | None = None
    _uploads_wanted: int = 1
    _spec: JobSpec | None = None

    def boot(self) -> None:
        self._boot += 1
        boot = self._boot
        self._session = None
        if self.plan.fate is Fate.NEVER_BOOTS:
            self.switch_works = False
            return
        found = DEADLINE.search(self.rented.user_data)
        assert found is not None, "the user data arms no deadline"
        limit, window = (float(each) for each in found.groups())
        self.scheduler.after(window if boot > 1 else limit, lambda: self._deadline(boot))
        if boot == 1:
            self.scheduler.spawn(f"host {self.rented.id}", self._live)

    def _deadline(self, boot: int) -> None:
        if boot == self._boot and self.rented.state is Seen.RUNNING and self.switch_works:
            self.outside.power_off(self.rented)

    # -- one life ----------------------------------------------------------------------------------------

    def _live(self) -> None:
        try:
            self._run()
            self._sleep(RELEASE_WAIT_SECONDS)
            self.outside.power_off(self.rented)
        except Off:
            return
        except Refused:
            self._unwanted()

    def _unwanted(self) -> None:
        try:
            if self._session is not None:
                self._sleep(RELEASE_WAIT_SECONDS)
            self.outside.power_off(self.rented)
        except Off:
            return

    def _run(self) -> None:
        plan = self.plan
        self._sleep(plan.boot_seconds)
        self._exchange()
        if self._session is None:
            return
        self._report(EventType.BOOTED)
        if plan.fate is Fate.PREFLIGHT:
            self._report(EventType.PREFLIGHT_FAILED, code="driver_too_old")
            return
        self._report(EventType.PREFLIGHT_PASSED)
        self._work(plan.pull_seconds)
        if plan.fate is Fate.PULL:
            self._report(EventType.PREFLIGHT_FAILED, code="image_pull")
            return
        self._report(EventType.IMAGE_PULLED)
        self._train()

    def _exchange(self) -> None:
        found = TOKEN.search(self.rented.user_data)
        assert found is not None, "the user data has no token"
        asked = TokenExchange(token=found.group(), nonce=self.nonce)
        give_up_at = self.scheduler.now + CONTACT_SECONDS
        pause = 5.0
        while self.scheduler.now < give_up_at:
            answer = self._ask(lambda: self.outside.agents.exchange(asked))
            if isinstance(answer, Session):
                self._session = answer
                return
            self._sleep(pause)
            pause = min(60.0, pause * 2)

    def _train(self) -> None:
        plan = self.plan
        if not self._granted():
            self._report(EventType.TRAINER_EXITED, exit_code=1)
            return
        self._report(EventType.STARTED, source="trainer")
        if plan.fate is Fate.FAILS and plan.exit in {
            TrainerExit.DATASET,
            TrainerExit.SPEC,
            TrainerExit.BASE_MODEL,
        }:
            self._fail(plan.exit)
            return
        self.trained, self.trained_at = True, self.scheduler.now
        if plan.fate in {Fate.GOOD, Fate.SILENT_END}:
            self._good()
            return
        if plan.fate is Fate.RUNAWAY:
            self.switch_works = False
            self._work(float("inf"))
        self._work(plan.train_seconds * plan.fails_after)
        self._break()

    def _granted(self) -> bool:
        for pause in REPORT_PAUSES:
            answer = self._ask(lambda: self.outside.agents.grants(self._machine()))
            if isinstance(answer, Grants):
                self._spec = answer.spec
                return True
            self._sleep(pause)
        return False

    def _good(self) -> None:
        assert self._session is not None
        left = self.scheduler.seconds_at(self._session.job.deadline_at) - self.scheduler.now
        if self.plan.train_seconds > left:
            self._work(max(0.0, left))
            self._upload(Flavour.CHECKPOINT)
            self._fail(TrainerExit.DEADLINE)
            return
        self._work(self.plan.train_seconds)
        self.finished = True
        self._report(EventType.PACKED, source="trainer")
        if self.plan.fate is Fate.SILENT_END:
            self._upload(self.plan.flavour)
        else:
            self._deliver(self._session.job.deadline_at)

    def _deliver(self, until: datetime) -> None:
        """Upload, and again when asked to; between them heartbeats, until release or the end of the time."""
        uploads = 0
        while uploads == 0 or self.scheduler.now < self.scheduler.seconds_at(until):
            if uploads < self._uploads_wanted:
                uploads += 1
                self._upload(self.plan.flavour_of(uploads), uploads)
                self._report(EventType.UPLOADED, source="trainer")
                self._report(EventType.COMPLETED, source="trainer")
            self._beat()
            self._sleep(60.0)

    def _break(self) -> None:
        match self.plan.fate:
            case Fate.FAILS:
                self._fail(self.plan.exit)
            case Fate.KILLED:
                self._report(EventType.TRAINER_EXITED, exit_code=137)
            case Fate.DIES:
                self.outside.lose(self.rented)
            case Fate.POWERS_OFF:
                self.outside.power_off(self.rented)
            case Fate.FROZEN:
                self.switch_works = False
                raise Off
            case _:
                raise Off

    def _fail(self, code: TrainerExit) -> None:
        self._report(EventType.FAILED, source="trainer", code=code)

    def _upload(self, flavour: Flavour, number: int = 1) -> None:
        assert self._spec is not None
        if flavour is Flavour.NOTHING:
            return
        archive, beside = built(self._spec, self.rented.attempt, flavour, number)
        prefix = f"runs/{self.rented.run_id}/attempt-{self.rented.attempt}/"
        if archive is not None:
            self.outside.put_object(prefix + ARCHIVE_NAME, archive)
        self._sleep(5)
        self.outside.put_object(prefix + MANIFEST_OBJECT, beside)
        self.uploaded = flavour
        self.outside.archive_put(self.rented.run_id, self.rented.attempt, flavour)

    # -- talking -----------------------------------------------------------------------------------------

    def _work(self, seconds: float) -> None:
        """Something that takes time, with a heartbeat a minute."""
        left = seconds
        while left > 0:
            self._beat()
            self._sleep(min(60.0, left))
            left -= 60.0

    def _beat(self) -> None:
        step = Heartbeat(step=1 if self.trained else None)
        reply = self._ask(lambda: self.outside.agents.heartbeat(self._machine(), step))
        if isinstance(reply, HeartbeatReply):
            self._uploads_wanted = max(self._uploads_wanted, reply.uploads_wanted)

    def _report(
        self,
        kind: EventType,
        *,
        source: Source = "host",
        code: str | None = None,
        exit_code: int | None = None,
    ) -> None:
        events = [self._event(kind, source, code, exit_code)]
        if source == "trainer" and self.trained:
            events.insert(0, self._event(EventType.STEP, source, None, None))
        batch = EventBatch.model_construct(events=tuple(events))
        for pause in REPORT_PAUSES:
            if self._ask(lambda: self.outside.agents.report(self._machine(), batch)) is not None:
                return
            self._sleep(pause)

    def _event(self, kind: EventType, source: Source, code: str | None, exit_code: int | None) -> Event:
        number = self._numbers[source] = self._numbers.get(source, -1) + 1
        return Event.model_construct(
            source=source,
            seq=number,
            at=self.scheduler.moment_at(self.scheduler.now + self.plan.clock_error),
            type=kind,
            message="",
            code=code,
            exit_code=exit_code,
            step=1 if kind is EventType.STEP else None,
            steps_total=None,
            loss=None,
            seconds_left=None,
        )

    def _machine(self) -> Machine:
        assert self._session is not None
        return self.outside.agents.authenticate(self._session.session_token)

    def _ask(self, call: Callable[[], object]) -> object:
        """One try; None if nothing came of it. Raises `Refused` and `Off`."""
        try:
            answer = self.outside.request(call)
        except Unreachable:
            answer = None
        if self.rented.state is not Seen.RUNNING or self._boot != 1:
            raise Off
        return answer

    def _sleep(self, seconds: float) -> None:
        self.scheduler.pause(seconds)
        if self.rented.state is not Seen.RUNNING or self._boot != 1:
            raise Off
