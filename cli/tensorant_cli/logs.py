"""A run's log: page by page, to its end or as it grows."""

from __future__ import annotations

from collections.abc import Iterator

from tensorant_cli.client import ApiClient
from tensorant_cli.http import Sleep
from tensorant_cli.models import LogLine, LogPage
from tensorant_cli.output import console
from tensorant_cli.run_views import log_text

POLL_SECONDS = 2.0


def pages(client: ApiClient, organization_id: str, run_id: str, *, as_json: bool) -> None:
    """Print what there is now."""
    for page in _from(client, organization_id, run_id, after=None):
        _print(page.lines, as_json=as_json)


def follow(client: ApiClient, organization_id: str, run_id: str, *, as_json: bool, sleep: Sleep) -> None:
    """Print until the run has ended. A later attempt has a log of its own, printed from its start."""
    after: str | None = None
    attempt: int | None = None
    while True:
        status = client.run(organization_id, run_id)  # before its log, so that the last lines are seen
        latest = status.machine.attempt if status.machine else None
        if latest != attempt:
            attempt, after = latest, None
        for page in _from(client, organization_id, run_id, after=after):
            _print(page.lines, as_json=as_json)
            after = page.next or after
        if status.ended:
            return
        sleep(POLL_SECONDS)


def _from(client: ApiClient, organization_id: str, run_id: str, *, after: str | None) -> Iterator[LogPage]:
    """Pages up to the present end, which is where `next` is the page's own mark again.

    A page without lines is not the end (CloudWatch Logs: GetLogEvents).
    """
    while True:
        page = client.logs(organization_id, run_id, after=after)
        yield page
        if page.next is None or page.next == after:
            return
        after = page.next


def _print(lines: list[LogLine], *, as_json: bool) -> None:
    out = console()
    for line in lines:
        if as_json:
            print(line.model_dump_json())
        else:
            out.print(log_text(line), soft_wrap=True)
