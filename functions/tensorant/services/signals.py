"""Waking a run's workflow: nothing is lost between a signaller and a waiter.

The signaller writes its signal, then reads the token; the waiter writes its token, then reads the
signals. Whoever comes second sees the other. Signals only wake: what they mean is decided by looking.
"""

from __future__ import annotations

from tensorant.ports import Store, Workflow


def signal(run_id: str, *, store: Store, workflow: Workflow) -> None:
    """Wake the run's workflow, or let its next wait end at once."""
    store.signal(run_id)
    token = store.waiter(run_id)
    if token is not None:
        workflow.wake(token)


def wait(run_id: str, task_token: str, *, seen: int, store: Store, workflow: Workflow) -> None:
    """Register a wait; end it at once if a signal came after number `seen`."""
    store.wait_with(run_id, task_token)
    if store.last_signal(run_id) > seen:
        workflow.wake(task_token)


def beat(run_id: str, *, store: Store, workflow: Workflow) -> None:
    """Extend the present wait, if there is one."""
    token = store.waiter(run_id)
    if token is not None:
        workflow.beat(token)
