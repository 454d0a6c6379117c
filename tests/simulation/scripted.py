"""Runs a definition with scripted answers and tells which states it entered: for comparing two executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.simulation.definition import Definition
from tests.simulation.interpreter import Answered, Execution, Interpreter, TaskError
from tests.simulation.scheduler import Scheduler

FOR_EVER = 10 * 365 * 86_400.0


@dataclass(frozen=True)
class Wake:
    """Of a wait: it is registered, and ended from outside after some seconds."""

    after: float = 0.0


@dataclass(frozen=True)
class Silence:
    """Of a wait: it is registered, beats come at these seconds, and nothing else."""

    beats: tuple[float, ...] = ()


Word = dict[str, Any] | TaskError | Wake | Silence


@dataclass
class Script:
    """What the functions answer, in the order in which they are invoked."""

    words: Sequence[Word]
    invoked: list[tuple[float, str, dict[str, Any]]] = field(default_factory=list)
    """Moment, function and payload of each invocation."""


def play(definition: Definition, given: dict[str, Any], script: Script, *, seed: int = 0) -> Execution:
    """Run one execution to its end. Raises `AssertionError` if the script is too short or too long."""
    scheduler = Scheduler()
    words = iter(script.words)

    def invoke(function: str, payload: dict[str, Any], done: Callable[[Answered | TaskError], None]) -> None:
        script.invoked.append((scheduler.now, function, payload))
        word = next(words, None)
        assert word is not None, f"the script has no word for {function}, call {len(script.invoked)}"
        if isinstance(word, Wake | Silence):
            _wait(scheduler, interpreter, payload["task_token"], word)
            done(Answered(None))
        else:
            done(word if isinstance(word, TaskError) else Answered(word))

    interpreter = Interpreter(definition, scheduler, invoke, Random(seed))
    execution = interpreter.start("scripted", given)
    scheduler.run(FOR_EVER)
    assert next(words, None) is None, "the script has words left over"
    return execution


def _wait(scheduler: Scheduler, interpreter: Interpreter, token: str, word: Wake | Silence) -> None:
    if isinstance(word, Wake):
        scheduler.after(word.after, lambda: interpreter.succeed_task(token))
        return
    for seconds in word.beats:
        scheduler.after(seconds, lambda: interpreter.heartbeat(token))
