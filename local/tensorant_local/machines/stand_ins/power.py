"""The machine's power switch, for the commands that turn it off."""

import os
import signal

from tensorant_local.machines.layout import INIT_VARIABLE


def shut_down() -> None:
    """Ask the machine's first process to take everything down, this process included."""
    os.kill(int(os.environ[INIT_VARIABLE]), signal.SIGTERM)
