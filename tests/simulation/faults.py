"""What goes wrong, when and how: drawn from the seed alone, and counted by kind.

Trouble comes in two ways: at any call with a small chance, and as storms, in which one operation of one
port fails for minutes, so that every retry is used up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, TypeVar

from tensorant.domain import errors
from tensorant.domain.errors import ProviderError, ProviderFault, Storage, TensorantError, Throttled
from tests.simulation.scheduler import Scheduler

T = TypeVar("T")


class Crashed(BaseException):
    """The function's process dies: nothing of it runs any more, and no service catches this."""


PROVIDER_ERRORS: tuple[type[ProviderError], ...] = tuple(
    kind for kind in vars(errors).values() if isinstance(kind, type) and kind.__base__ is ProviderError
)
"""Every error class of an outside system."""

WRITES = frozenset(
    {
        "ask",
        "stop",
        "terminate",
        "put",
        "start",
        "wake",
        "beat",
        "commit",
        "signal",
        "wait_with",
        "save_progress",
        "save_terminal_event",
    }
)
ERRORS: dict[str, tuple[type[TensorantError], ...]] = {
    "compute": PROVIDER_ERRORS,
    "store": (Throttled, ProviderFault),
    "storage": (Storage,),
    "secrets": (Throttled, ProviderFault, errors.Credentials),
    "workflow": (ProviderFault,),
    "logs": (ProviderFault,),
}
"""What each port may raise without having acted."""
LOST: dict[str, tuple[type[TensorantError], ...]] = {**ERRORS, "compute": (Throttled, ProviderFault)}
"""What it may raise although it acted: the reply got lost."""


@dataclass(frozen=True)
class Storm:
    port: str
    operation: str
    start: float
    end: float
    error: type[TensorantError] | None
    """None: calls are not refused, but take longer than their function has."""


@dataclass(frozen=True)
class Profile:
    """How rough one schedule is: chances for each call, all of them 0 for a calm one."""

    refused: float = 0.0
    lost: float = 0.0
    crashed: float = 0.0
    slow: float = 0.0
    switched: float = 0.0
    """Somebody else may run here."""
    invocation: float = 0.0
    """Lambda itself fails, before the function ran or after."""
    storms: tuple[Storm, ...] = ()

    @classmethod
    def drawn(cls, random: Random, *, until: float) -> Profile:
        def chance(*choices: float) -> float:
            return random.choice(choices)

        return cls(
            refused=chance(0, 0, 0.003, 0.02, 0.08),
            lost=chance(0, 0, 0.003, 0.02, 0.05),
            crashed=chance(0, 0, 0.003, 0.02),
            slow=chance(0, 0, 0.003, 0.02, 0.06),
            switched=chance(0, 0.05, 0.3, 0.6),
            invocation=chance(0, 0, 0.01, 0.05),
            storms=_storms(random, until),
        )


STALLED = 0.5
"""How many calls a stalling port lets wait."""
STALL_SECONDS = (20.0, 150.0)
STALLED_ASKS = Storm("compute", "ask", 0.0, 3600.0, None)
STALLED_ASKS_CHANCE = 0.25
"""An ask that its function does not live to hear of is the hardest case there is: often."""

OPERATIONS = {
    "compute": ("ask", "observe", "stop", "terminate", "prices", "*"),
    "store": ("commit", "save_progress", "signal", "waiter", "wait_with", "last_signal", "*"),
    "storage": ("head", "get", "read", "put", "*"),
    "secrets": ("read",),
    "workflow": ("start", "wake", "beat"),
}


def _storms(random: Random, until: float) -> tuple[Storm, ...]:
    storms = tuple(_storm(random, until) for _ in range(random.choice([0, 0, 1, 2, 4])))
    return (*storms, STALLED_ASKS) if random.random() < STALLED_ASKS_CHANCE else storms


def _storm(random: Random, until: float) -> Storm:
    port = random.choice(
        ["compute", "compute", "compute", "store", "store", "storage", "secrets", "workflow"]
    )
    start = random.uniform(0, until * 0.8)
    return Storm(
        port=port,
        operation=random.choice(OPERATIONS[port]),
        start=start,
        end=start + random.choice([30, 180, 600, 3600]),
        error=random.choice([*ERRORS[port], None]),
    )


@dataclass
class Faults:
    """Decides at every call. `active` ends when the schedule's faults cease."""

    random: Random
    scheduler: Scheduler
    profile: Profile
    active: bool = True
    counts: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    told: Callable[[str], object] = lambda _: None

    def around(self, port: str, operation: str, act: Callable[[], T]) -> T:
        """Let a call happen, with whatever the seed does to it."""
        self.calls[port] += 1
        if not self.active or self.scheduler.current is None:
            return act()
        self._before(port, operation)
        result = act()
        self._after(port, operation)
        return result

    def _before(self, port: str, operation: str) -> None:
        profile = self.profile
        self._maybe_pause(port, operation)
        self._maybe_crash("before", port, operation)
        if profile.storms:
            self._storm(port, operation)
        if profile.refused and self.random.random() < profile.refused:
            self._raise("refused", port, operation, self.random.choice(ERRORS[port]))

    def _after(self, port: str, operation: str) -> None:
        profile = self.profile
        self._maybe_pause(port, operation)
        self._maybe_crash("after", port, operation)
        if profile.lost and operation in WRITES and self.random.random() < profile.lost:
            self._raise("reply_lost", port, operation, self.random.choice(LOST[port]))

    def _maybe_pause(self, port: str, operation: str) -> None:
        profile = self.profile
        if profile.slow and self.random.random() < profile.slow:
            self.counts["slow"] += 1
            self.scheduler.pause(self.random.choice([1, 5, 20, 45, 80]) * self.random.random())
        elif profile.switched and self.random.random() < profile.switched:
            self.scheduler.pause(self.random.random() * 0.3)

    def _maybe_crash(self, when: str, port: str, operation: str) -> None:
        if self.profile.crashed and self.random.random() < self.profile.crashed:
            self.counts[f"crash_{when}_{'write' if operation in WRITES else 'read'}"] += 1
            self.told(f"crash {when} {port}.{operation}")
            raise Crashed(f"{when} {port}.{operation}")

    def _storm(self, port: str, operation: str) -> None:
        for storm in self.profile.storms:
            hit = storm.port == port and storm.operation in {operation, "*"}
            if hit and storm.start <= self.scheduler.now < storm.end:
                self._strike(storm, operation)

    def _strike(self, storm: Storm, operation: str) -> None:
        if storm.error is not None:
            self._raise("storm", storm.port, operation, storm.error)
        if self.random.random() < STALLED:
            self.counts["stalled"] += 1
            self.told(f"{storm.port}.{operation} stalls")
            self.scheduler.pause(self.random.uniform(*STALL_SECONDS))

    def _raise(self, kind: str, port: str, operation: str, error: type[TensorantError]) -> None:
        self.counts[kind] += 1
        self.counts[f"{port}: {error.__name__}"] += 1
        self.told(f"{kind} {port}.{operation} {error.__name__}")
        raise error(f"simulated_{error.__name__.lower()}", f"{kind} at {port}.{operation}")

    def chance(self, kind: str, probability: float) -> bool:
        """Whether a fault of that kind happens now; counted."""
        if self.active and probability and self.random.random() < probability:
            self.counts[kind] += 1
            return True
        return False


class Faulty:
    """Any port, with faults around each of its calls."""

    def __init__(self, port: object, name: str, faults: Faults) -> None:
        self._port, self._name, self._faults = port, name, faults

    def __getattr__(self, operation: str) -> Any:
        inner = getattr(self._port, operation)
        if not callable(inner):
            return inner

        def call(*given: Any, **named: Any) -> Any:
            name = given[0].value if operation == "make" else operation
            return self._faults.around(self._name, name, partial(inner, *given, **named))

        self.__dict__[operation] = call
        return call
