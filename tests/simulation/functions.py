"""Invoking functions: Lambda's time-out, its own failures, and a function that runs on beside its retry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tensorant.domain.errors import TensorantError
from tests.simulation.faults import Crashed, Faults
from tests.simulation.interpreter import Answered, TaskError
from tests.simulation.scheduler import Scheduler

TIMEOUT_SECONDS = {"LaunchMachine": 60.0, "VerifyAdapter": 900.0, "Sweep": 300.0}
DEFAULT_TIMEOUT_SECONDS = 30.0
RUNS_ON_SECONDS = 120.0
"""How long, at most, what a function had under way may still act after its time-out: a request that is
already at the provider. Time-out and this together are below the ask's lease."""

Handler = Callable[[Mapping[str, Any]], Any]
Done = Callable[[Answered | TaskError], None]


@dataclass(frozen=True)
class Functions:
    scheduler: Scheduler
    faults: Faults
    handlers: Mapping[str, Handler]
    skew: Callable[[], float]
    told: Callable[[str], object]

    def invoke(self, name: str, payload: Mapping[str, Any], done: Done) -> None:
        """As the workflow does: one answer, an error's class name, or Lambda's word for what happened."""
        if self.faults.chance("invocation_refused", self.faults.profile.invocation):
            done(TaskError("Lambda.TooManyRequestsException"))
            return
        answered = False

        def answer(word: Answered | TaskError) -> None:
            nonlocal answered
            if not answered:
                answered = True
                timer.cancel()
                done(word)

        def out_of_time() -> None:
            if not answered:
                self.faults.counts["function_timed_out"] += 1
                self.told(f"{name} timed out and runs on")
                answer(TaskError("Sandbox.Timedout"))
                self.scheduler.after(RUNS_ON_SECONDS, kill)

        def kill() -> None:
            process.kill()

        def work() -> None:
            word = self._called(name, payload)
            if self.faults.chance("invocation_reply_lost", self.faults.profile.invocation):
                word = TaskError("Lambda.ServiceException")
            answer(word)

        timer = self.scheduler.after(TIMEOUT_SECONDS.get(name, DEFAULT_TIMEOUT_SECONDS), out_of_time)
        process = self.scheduler.spawn(name, work, skew=self.skew())

    def _called(self, name: str, payload: Mapping[str, Any]) -> Answered | TaskError:
        try:
            return Answered(self.handlers[name](payload))
        except Crashed:
            return TaskError("Lambda.Unknown")
        except Exception as error:  # noqa: BLE001 - as the runtime does: the class names the error
            if not isinstance(error, TensorantError):
                self.faults.counts[f"unexpected {type(error).__name__}: {error}"] += 1
            self.told(f"{name} raised {type(error).__name__}: {error}")
            return TaskError(type(error).__name__, str(error))

    def deliver(self, name: str, payload: Mapping[str, Any], *, tries: int = 3) -> None:
        """As EventBridge does: asynchronously, again after a failure, then never."""

        def done(word: Answered | TaskError) -> None:
            if isinstance(word, TaskError) and tries > 1:
                self.scheduler.after(60.0, lambda: self.deliver(name, payload, tries=tries - 1))

        self.invoke(name, payload, done)
