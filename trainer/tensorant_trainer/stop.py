"""The wish to end early: from a signal, or from the control plane."""

from __future__ import annotations

import time

from tensorant.contract import TrainerExit
from tensorant_trainer.errors import TrainerError

SLICE_SECONDS = 0.2


class Stop:
    """Set once, read often, and from any thread.

    A plain attribute on purpose: a signal handler may set it at any instruction, so there is no lock to
    wait for.
    """

    def __init__(self) -> None:
        self._reason: str | None = None

    def request(self, reason: str) -> None:
        """Ask the run to end; the first reason stays."""
        self._reason = self._reason or reason

    @property
    def requested(self) -> bool:
        return self._reason is not None

    def check(self) -> None:
        """Raise `TrainerError` (interrupted) if somebody asked to end."""
        if self._reason is not None:
            raise TrainerError(TrainerExit.INTERRUPTED, f"The run was interrupted: {self._reason}.")

    def pause(self, seconds: float) -> None:
        """Sleep, but end within a moment (raises as `check` does) once somebody asks to."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, SLICE_SECONDS))
        self.check()
