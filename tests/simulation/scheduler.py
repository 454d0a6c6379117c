"""Virtual time: one thing happens at a moment, in an order that the seed alone decides.

Synchronous code runs in processes (greenlets): a port call inside one may pause it, and others go on
meanwhile, so that reads and writes of different functions interleave as they do between real machines.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

from tests.support.fakes.small import NOON


class Killed(BaseException):
    """Thrown into a process that is ended from outside: no service catches it."""


@dataclass(eq=False)
class Timer:
    due: float
    action: Callable[[], object]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass(eq=False)
class Process:
    """One flow of synchronous code. `skew` is how many seconds its machine's clock is off."""

    name: str
    scheduler: Scheduler
    skew: float = 0.0
    killed: bool = False
    ended: bool = False
    _flow: greenlet | None = None

    def kill(self) -> None:
        """It ends at its next pause."""
        self.killed = True


@dataclass
class Scheduler:
    """Seconds since the start; `datetime`s are derived from them."""

    now: float = 0.0
    current: Process | None = None
    _queue: list[tuple[float, int, Timer]] = field(default_factory=list)
    _count: int = 0
    _hub: greenlet | None = None

    @staticmethod
    def moment_at(seconds: float) -> datetime:
        return NOON + timedelta(seconds=seconds)

    @staticmethod
    def seconds_at(moment: datetime) -> float:
        return (moment - NOON).total_seconds()

    def after(self, seconds: float, action: Callable[[], object]) -> Timer:
        timer = Timer(self.now + max(0.0, seconds), action)
        self._count += 1
        heapq.heappush(self._queue, (timer.due, self._count, timer))
        return timer

    def run(self, until: float) -> None:
        """Let everything happen that is due before `until`."""
        self._hub = getcurrent()
        while self._queue and self._queue[0][0] <= until:
            due, _, timer = heapq.heappop(self._queue)
            if not timer.cancelled:
                self.now = due
                timer.action()
        self.now = until

    # -- processes ---------------------------------------------------------------------------------------

    def spawn(self, name: str, work: Callable[[], object], *, skew: float = 0.0) -> Process:
        """Start `work` at once; it must not let an exception escape but `Killed`."""
        process = Process(name, self, skew)
        process._flow = greenlet(partial(self._work, process, work), parent=self._hub)
        self._resume(process)
        return process

    def _work(self, process: Process, work: Callable[[], object]) -> None:
        try:
            work()
        except Killed:
            pass
        finally:
            process.ended = True

    def _resume(self, process: Process) -> None:
        assert process._flow is not None
        before, self.current = self.current, process
        process._flow.parent = getcurrent()
        try:
            process._flow.switch()
        finally:
            self.current = before

    def pause(self, seconds: float) -> None:
        """Let the present process wait. Raises `Killed` if it was ended meanwhile; nothing outside one."""
        process = self.current
        if process is None or process._flow is None:
            return
        self.after(seconds, partial(self._resume, process))
        parent = process._flow.parent
        assert parent is not None
        parent.switch()
        if process.killed:
            raise Killed

    def close(self) -> None:
        """End every process that still waits, so that nothing is left behind."""
        while self._queue:
            _, _, timer = heapq.heappop(self._queue)
            action = timer.action
            if isinstance(action, partial) and action.func == self._resume:
                action.args[0].kill()
                self._resume(action.args[0])
