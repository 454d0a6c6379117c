"""Tells the control plane how the run goes: events, heartbeats and the log, from one background thread.

Training never waits for the network: what is told is queued, and sent in order when it can be.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tensorant.contract import TERMINAL_EVENTS, Event, EventType, Heartbeat
from tensorant_trainer.agent import AgentRefusedError, AgentUnavailableError, AttemptOverError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from tensorant.contract import TrainerExit
    from tensorant_trainer.agent import AgentClient
    from tensorant_trainer.redaction import Redactor
    from tensorant_trainer.run_log import RunLog
    from tensorant_trainer.stop import Stop

log = logging.getLogger(__name__)

TICK_SECONDS = 1.0
LOG_SECONDS = 5.0
STEP_SECONDS = 3.0
"""Step events come at most this often, and each at least 2% of the time after the one before: a run of
any length has few hundred of them. Heartbeats carry the step in between."""
DRAIN_SECONDS = 60.0
MAX_PAUSE_SECONDS = 30.0
MAX_BATCH = 100
MAX_MESSAGE_CHARACTERS = 2_000


class Progress:
    """A context: its thread lives inside. Leaving it sends what is queued, for at most `DRAIN_SECONDS`."""

    def __init__(
        self, agent: AgentClient, *, stop: Stop, run_log: RunLog, redactor: Redactor, heartbeat_seconds: float
    ) -> None:
        self._agent = agent
        self._stop = stop
        self._run_log = run_log
        self._redactor = redactor
        self._heartbeat_seconds = heartbeat_seconds
        self._queue: deque[Event] = deque()
        self._seq = 0
        self._heartbeat = Heartbeat()
        self._next_heartbeat = 0.0
        self._next_log = 0.0
        self._started = time.monotonic()
        self._next_step_event = 0.0
        self._over = False
        self._uploads_wanted = 1
        self._closing = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._wake.set()
        self._thread.join(DRAIN_SECONDS)

    @property
    def uploads_wanted(self) -> int:
        """How often the archive should have been uploaded by now."""
        return self._uploads_wanted

    # -- what is told: by the training thread ------------------------------------------------------------

    def event(
        self,
        kind: EventType,
        message: str = "",
        *,
        code: TrainerExit | None = None,
        exit_code: int | None = None,
    ) -> None:
        """Queue an event; the queue is sent at once, and kept until it has arrived."""
        self._enqueue(kind, message=message, code=code, exit_code=exit_code)

    def step(self, heartbeat: Heartbeat) -> None:
        """Note a step. It travels with the next heartbeat, and now and then as an event."""
        self._heartbeat = heartbeat
        now = time.monotonic()
        last = heartbeat.step == heartbeat.steps_total
        if now < self._next_step_event and not last:
            return
        self._next_step_event = now + max(STEP_SECONDS, (now - self._started) / 50)
        log.info("Step %s of %s, loss %s", heartbeat.step, heartbeat.steps_total, heartbeat.loss)
        self._enqueue(EventType.STEP, **heartbeat.model_dump())

    def _enqueue(self, kind: EventType, *, message: str = "", **fields: object) -> None:
        text = self._redactor.clean(message)[:MAX_MESSAGE_CHARACTERS]
        known = {
            "source": "trainer",
            "seq": self._seq,
            "at": datetime.now(UTC),
            "type": kind,
            "message": text,
        }
        self._queue.append(Event.model_validate({**known, **fields}))
        self._seq += 1
        if kind in TERMINAL_EVENTS - {EventType.COMPLETED}:  # after that one heartbeats go on, until release
            self._closing.set()
        self._wake.set()

    # -- how it is sent: by the background thread --------------------------------------------------------

    def _run(self) -> None:
        failures = 0
        while not self._finished():
            try:
                self._turn()
                failures = 0
            except AgentUnavailableError as error:
                failures += 1
                log.warning("%s", error)
            except AttemptOverError as error:
                self._over = True
                self._stop.request(error.message)
            if not self._finished():
                self._wait(failures)

    def _wait(self, failures: int) -> None:
        """Until there is something to send or a tick has passed; longer, whatever comes, after failures."""
        if not failures:
            self._wake.wait(TICK_SECONDS)
            self._wake.clear()
        elif self._closing.is_set():
            time.sleep(TICK_SECONDS)
        else:
            self._closing.wait(min(TICK_SECONDS * 2 ** min(failures, 5), MAX_PAUSE_SECONDS))

    def _finished(self) -> bool:
        return self._over or (self._closing.is_set() and not self._queue and not self._run_log.next_chunk())

    def _turn(self) -> None:
        """The log goes before a terminal event, which may end the attempt and with it the right to log."""
        now = time.monotonic()
        if now >= self._next_heartbeat:
            self._beat()
            self._next_heartbeat = now + self._heartbeat_seconds
        if now >= self._next_log or self._closing.is_set():
            self._send_log()
            self._next_log = now + LOG_SECONDS
        if self._queue:
            self._send_events()

    def _beat(self) -> None:
        try:
            reply = self._agent.send_heartbeat(self._heartbeat)
        except AgentRefusedError as error:
            log.warning("%s", error)
        else:
            self._uploads_wanted = max(self._uploads_wanted, reply.uploads_wanted)
            if reply.stop:
                self._stop.request("the control plane asked for it")

    def _send_log(self) -> None:
        chunk = self._run_log.next_chunk()
        if chunk is None:
            return
        try:
            self._agent.send_log(chunk)
        except AgentRefusedError:
            log.debug("A piece of the log was refused", exc_info=True)  # louder would make the next piece
        self._run_log.delivered()

    def _send_events(self) -> None:
        """What the API refuses once it refuses always: go on without it, or nothing after it would arrive."""
        batch = tuple(self._queue)[:MAX_BATCH]
        try:
            self._agent.send_events(batch)
        except AgentRefusedError as error:
            log.warning("%s", error)
        for _ in batch:
            self._queue.popleft()
