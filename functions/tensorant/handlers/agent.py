"""The agent API: what machines ask and say. They authenticate with their session token alone."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import BaseModel

from tensorant import bootstrap
from tensorant.contract import (
    EventBatch,
    GrantRequest,
    Grants,
    Heartbeat,
    HeartbeatReply,
    LogChunk,
    Session,
    TokenExchange,
)
from tensorant.domain.machines import Machine
from tensorant.handlers.http import resolver

app = resolver()


class Accepted(BaseModel):
    accepted: int


@app.post("/agent/v1/sessions")
def open_session(request: TokenExchange) -> Session:
    """Exchange the one-time token, bound to the machine's nonce, for the attempt's session."""
    return bootstrap.agents().exchange(request)


@app.post("/agent/v1/grants")
def grant(request: GrantRequest) -> Grants:  # noqa: ARG001 - its content is not needed yet
    """The job and short-lived rights for this attempt's objects."""
    return bootstrap.agents().grants(machine())


@app.post("/agent/v1/events")
def report_events(request: EventBatch) -> tuple[Accepted, int]:
    """Report events; each counts once however often it is sent."""
    return Accepted(accepted=bootstrap.agents().report(machine(), request)), HTTPStatus.ACCEPTED


@app.post("/agent/v1/heartbeats")
def report_heartbeat(request: Heartbeat) -> HeartbeatReply:
    return bootstrap.agents().heartbeat(machine(), request)


@app.post("/agent/v1/logs")
def ship_log(request: LogChunk) -> tuple[Accepted, int]:
    bootstrap.agents().log(machine(), request)
    return Accepted(accepted=len(request.lines)), HTTPStatus.ACCEPTED


def machine() -> Machine:
    """The machine whose session token the request carries."""
    authorization = app.current_event.headers.get("authorization", "")
    return bootstrap.agents().authenticate(authorization.removeprefix("Bearer "))


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
