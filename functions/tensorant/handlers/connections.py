"""Creating, changing, checking and removing connections: the only function that writes credentials."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.utilities.typing import LambdaContext

from tensorant import bootstrap
from tensorant.domain.connections import Connection
from tensorant.handlers.connection_requests import (
    CREATE_CONNECTION,
    ChangeConnection,
    credentials_of,
    parsed,
)
from tensorant.handlers.connection_views import ConnectionView
from tensorant.handlers.http import actor, resolver

app = resolver()

CONNECTIONS = "/v1/organizations/<organization_id>/connections"
CONNECTION = "/v1/organizations/<organization_id>/connections/<connection_id>"

Sent = Annotated[dict[str, Any], Body()]
"""Looked at by `parsed`, since whether credentials have expired depends on the moment."""


@app.post(CONNECTIONS)
def create_connection(organization_id: str, body: Sent) -> tuple[ConnectionView, int]:
    """Save a connection and start its check; read it to see the result."""
    private_storage = bootstrap.settings().private_storage_allowed
    request = parsed(CREATE_CONNECTION, body, now=bootstrap.clock().now(), private_storage=private_storage)
    connection = bootstrap.saved_connections().create(
        actor(app.current_event),
        organization_id,
        name=request.name,
        settings=request.settings(),
        secret=request.credentials.secret(),
        expire_at=request.credentials.expires_at,
        managed_by=request.managed_by,
    )
    return _accepted(connection)


@app.patch(CONNECTION)
def change_connection(
    organization_id: str, connection_id: str, request: ChangeConnection
) -> tuple[ConnectionView, int]:
    """Change a connection's name and settings, and check them; read it to see the result."""
    connection = bootstrap.connection_changes().change(
        actor(app.current_event), organization_id, connection_id, request.changes()
    )
    return _accepted(connection)


@app.put(f"{CONNECTION}/credentials")
def replace_credentials(organization_id: str, connection_id: str, body: Sent) -> tuple[ConnectionView, int]:
    """Replace a connection's credentials and check with them; read it to see the result."""
    credentials = parsed(credentials_of(connection_id), body, now=bootstrap.clock().now())
    connection = bootstrap.connection_changes().replace_credentials(
        actor(app.current_event),
        organization_id,
        connection_id,
        secret=credentials.secret(),
        expire_at=credentials.expires_at,
    )
    return _accepted(connection)


@app.post(f"{CONNECTION}/check")
def check_connection(organization_id: str, connection_id: str) -> tuple[ConnectionView, int]:
    """Check a connection again; read it to see the result."""
    connection = bootstrap.saved_connections().check_again(
        actor(app.current_event), organization_id, connection_id
    )
    return _accepted(connection)


@app.delete(CONNECTION)
def remove_connection(organization_id: str, connection_id: str) -> ConnectionView:
    """Remove a connection that nothing depends on; its credentials are deleted soon after."""
    connection = bootstrap.removed_connections().remove(
        actor(app.current_event), organization_id, connection_id
    )
    return ConnectionView.of(connection, now=bootstrap.clock().now())


def _accepted(connection: Connection) -> tuple[ConnectionView, int]:
    return ConnectionView.of(connection, now=bootstrap.clock().now()), HTTPStatus.ACCEPTED


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
