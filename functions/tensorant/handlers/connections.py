"""Creating and checking connections: the only function that writes credentials."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.utilities.typing import LambdaContext

from tensorant import bootstrap
from tensorant.handlers.http import actor, resolver
from tensorant.handlers.requests import AwsCredentials, CreateConnection
from tensorant.handlers.views import ConnectionView

app = resolver()


@app.post("/v1/organizations/<organization_id>/connections")
def create_connection(
    organization_id: str, request: Annotated[CreateConnection, Body()]
) -> tuple[ConnectionView, int]:
    """Save a connection and start its check; read it to see the result."""
    connection = bootstrap.saved_connections().create(
        actor(app.current_event),
        organization_id,
        name=request.name,
        settings=request.settings(),
        secret=request.credentials.secret(),
    )
    return ConnectionView.of(connection), HTTPStatus.ACCEPTED


@app.put("/v1/organizations/<organization_id>/connections/<connection_id>/credentials")
def replace_credentials(
    organization_id: str, connection_id: str, request: AwsCredentials
) -> tuple[ConnectionView, int]:
    """Replace a connection's credentials and check with them; read it to see the result."""
    connection = bootstrap.saved_connections().replace_credentials(
        actor(app.current_event), organization_id, connection_id, secret=request.secret()
    )
    return ConnectionView.of(connection), HTTPStatus.ACCEPTED


@app.post("/v1/organizations/<organization_id>/connections/<connection_id>/check")
def check_connection(organization_id: str, connection_id: str) -> tuple[ConnectionView, int]:
    """Check a connection again; read it to see the result."""
    connection = bootstrap.saved_connections().check_again(
        actor(app.current_event), organization_id, connection_id
    )
    return ConnectionView.of(connection), HTTPStatus.ACCEPTED


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
