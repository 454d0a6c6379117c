"""A connection's check: waited for, and its result shown."""

from __future__ import annotations

import typer

from tensorant_cli.client import ApiClient
from tensorant_cli.connection_views import connection_view
from tensorant_cli.http import Sleep
from tensorant_cli.models import Connection
from tensorant_cli.output import console, say_json, waiting
from tensorant_cli.session import Session
from tensorant_cli.waiting import wait_until

CHECK_SECONDS = 180.0
"""A check is given two minutes, and some for its start."""


def wait_for_check(
    client: ApiClient, organization_id: str, connection_id: str, *, sleep: Sleep
) -> Connection:
    """The connection once its check has ended, well or not."""
    return wait_until(
        lambda: client.connection(organization_id, connection_id),
        lambda connection: connection.status != "checking",
        what=f"The check of {connection_id}",
        seconds=CHECK_SECONDS,
        sleep=sleep,
        again=f"tensorant connections show {connection_id}",
    )


def show(session: Session, connection: Connection, *, as_json: bool) -> None:
    """As JSON, or with what its last check saw."""
    if as_json:
        say_json(connection)
    else:
        console().print(connection_view(connection, now=session.surroundings.now()))


def finish(
    session: Session, organization_id: str, connection: Connection, *, wait: bool, as_json: bool
) -> None:
    """Show the connection, after its check if that is to be waited for. Exit code 1 if it can't be used."""
    if wait:
        with waiting(f"Checking {connection.name}…"):
            connection = wait_for_check(
                session.client, organization_id, connection.id, sleep=session.surroundings.sleep
            )
    show(session, connection, as_json=as_json)
    if connection.status == "failed":
        raise typer.Exit(1)
