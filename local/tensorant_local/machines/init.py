"""The first process of a simulated machine: boots its user data, and takes everything down at power-off.

Started by `host` with a pipe as standard input, the cord: when it closes, by intent or because the host
process has died, the machine loses its power at once. SIGTERM is a shut-down: processes may end, then they
are killed. On standard output one word is said, `off`, when nothing of the machine runs any more.

Arguments: the machine's folder, and `first` or `again`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

from tensorant_local.machines import cloud_init
from tensorant_local.machines.layout import FOLDER_VARIABLE, INIT_VARIABLE, Layout

OFF = b"off\n"
CORD = 0
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_POLL_SECONDS = 0.02


def main() -> None:
    layout = Layout(Path(sys.argv[1]))
    os.environ.pop("PYTHONPATH", None)  # for this process alone
    _adopt_orphans()
    wake = _wake_on_signals()
    os.environ[INIT_VARIABLE] = str(os.getpid())
    os.environ[FOLDER_VARIABLE] = str(layout.folder)
    userland = os.fork()
    if userland == 0:
        _run_userland(layout, first=sys.argv[2] == "first")
    with contextlib.suppress(PermissionError):  # it may have made its group itself already
        os.setpgid(userland, userland)
    shut_down = _wait_for_power_off(wake)
    _end(userland, grace_seconds=layout.options.shutdown_grace_seconds if shut_down else 0)
    os.write(sys.stdout.fileno(), OFF)


def _adopt_orphans() -> None:
    """Become the parent of whatever is left behind in this machine, as a first process is (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _wake_on_signals() -> int:
    """A file descriptor that becomes readable when a signal has come."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return read


def _run_userland(layout: Layout, *, first: bool) -> NoReturn:
    """All else that runs in the machine descends from here, in a process group of its own."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), CORD)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        cloud_init.boot(cloud_init.parse(layout.user_data.read_bytes()), layout, first=first)
    except Exception as error:
        print(f"cloud-init: {type(error).__name__}: {error}", flush=True)
    while True:  # stays, so that the process group keeps its number
        signal.pause()


def _wait_for_power_off(wake: int) -> bool:
    """Reap until the power goes. True: a shut-down was asked for; False: the cord was cut."""
    while True:
        readable, _, _ = select.select([CORD, wake], [], [])
        if CORD in readable:
            return False
        if signal.SIGTERM in os.read(wake, 512):
            return True
        _reap()


def _end(userland: int, *, grace_seconds: float) -> None:
    """Returns when no process of the machine is left."""
    give_up_at = time.monotonic() + grace_seconds
    _signal_group(userland, signal.SIGTERM if grace_seconds else signal.SIGKILL)
    while _reap():
        if time.monotonic() > give_up_at:
            _signal_group(userland, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def _reap() -> bool:
    """Collect processes that have ended; whether any are left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


if __name__ == "__main__":
    main()
