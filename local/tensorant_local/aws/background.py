"""The threads of the embedded cloud: jobs that run soon, later, or one after another."""

from __future__ import annotations

import heapq
import itertools
import logging
import time
from collections import deque
from threading import Condition, Thread, current_thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Job = Callable[[], object]

_log = logging.getLogger(__name__)


class Background:
    """Runs jobs on daemon threads until `stop`; a job that is given, or due, after it is dropped.

    A job that raises is logged and forgotten: whoever needs retries schedules them.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._stopped = False
        self._threads: set[Thread] = set()
        self._due: list[tuple[float, int, Job]] = []
        self._order = itertools.count()
        self._lanes: dict[str, deque[Job]] = {}
        self._clock: Thread | None = None

    def soon(self, job: Job) -> None:
        """Run `job` on a thread of its own."""
        with self._changed:
            if self._stopped:
                return
            thread = Thread(target=self._run_and_leave, args=(job,), name="cloud-job", daemon=True)
            self._threads.add(thread)
        thread.start()

    def later(self, seconds: float, job: Job) -> None:
        """Run `job` after `seconds`."""
        with self._changed:
            if self._stopped:
                return
            if self._clock is None:
                self._clock = Thread(target=self._keep_time, name="cloud-clock", daemon=True)
                self._clock.start()
            heapq.heappush(self._due, (time.monotonic() + seconds, next(self._order), job))
            self._changed.notify_all()

    def in_order(self, lane: str, job: Job) -> None:
        """Run `job` after every job given to the same lane before."""
        with self._changed:
            if lane in self._lanes:
                self._lanes[lane].append(job)
                return
            self._lanes[lane] = deque([job])
        self.soon(lambda: self._drain(lane))

    def stop(self, patience_seconds: float = 5.0) -> None:
        """Start nothing more, and wait for what runs, up to `patience_seconds` in all."""
        with self._changed:
            self._stopped = True
            self._due.clear()
            self._changed.notify_all()
            threads = [*self._threads, *([self._clock] if self._clock else [])]
        deadline = time.monotonic() + patience_seconds
        for thread in threads:
            if thread is not current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _keep_time(self) -> None:
        while (job := self._next_due()) is not None:
            self.soon(job)

    def _next_due(self) -> Job | None:
        with self._changed:
            while not self._stopped:
                if not self._due:
                    self._changed.wait()
                elif (wait_seconds := self._due[0][0] - time.monotonic()) > 0:
                    self._changed.wait(wait_seconds)
                else:
                    return heapq.heappop(self._due)[2]
            return None

    def _drain(self, lane: str) -> None:
        while True:
            with self._changed:
                if not self._lanes[lane] or self._stopped:
                    del self._lanes[lane]
                    return
                job = self._lanes[lane].popleft()
            _run(job)

    def _run_and_leave(self, job: Job) -> None:
        try:
            _run(job)
        finally:
            with self._changed:
                self._threads.discard(current_thread())


def _run(job: Job) -> None:
    try:
        job()
    except Exception:
        _log.exception("a job of the embedded cloud failed")
