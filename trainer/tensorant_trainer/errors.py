"""The trainer's one error, and what each way of ending means to the process."""

from __future__ import annotations

import errno

from tensorant.contract import EXIT_CODES, TrainerExit


class TrainerError(Exception):
    """The run cannot go on. `code` is told to the control plane, `message` to the user: what, why, the mend."""

    def __init__(self, code: TrainerExit, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.code]


def as_trainer_error(error: Exception) -> TrainerError:
    """The same error if it is one of ours; a full disk or memory by its own code; anything else is a bug."""
    if isinstance(error, TrainerError):
        return error
    if isinstance(error, MemoryError):
        return TrainerError(
            TrainerExit.OUT_OF_MEMORY, "The machine's memory does not suffice. Choose a larger machine type."
        )
    if disk_is_full(error):
        return TrainerError(TrainerExit.DISK, "The disk is full. Choose a larger workspace for this run.")
    return TrainerError(TrainerExit.BUG, f"The trainer failed: {type(error).__name__}: {error}")


def disk_is_full(error: BaseException) -> bool:
    """True for ENOSPC and EDQUOT, and for native writers, which tell it in words alone."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return "No space left on device" in str(error)
