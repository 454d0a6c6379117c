"""What the HTTP functions share: the resolver with our error shape, and who is asking."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from tensorant import bootstrap
from tensorant.domain.errors import NotFound, TensorantError
from tensorant.domain.identity import Actor
from tensorant.handlers import problems

logger = Logger()


def resolver() -> APIGatewayHttpResolver:
    """A validating resolver that answers every error in the documented shape."""
    app = APIGatewayHttpResolver(enable_validation=True)

    def request_id() -> str:
        return str(app.current_event.request_context.request_id)

    @app.exception_handler(TensorantError)  # type: ignore[untyped-decorator]
    def rejected(error: TensorantError) -> Response[str]:
        logger.info("rejected", extra={"code": error.code, "field": error.field})
        return problems.answer(error, request_id())

    @app.exception_handler(RequestValidationError)  # type: ignore[untyped-decorator]
    def malformed(error: RequestValidationError) -> Response[str]:
        return problems.invalid(error.errors(), request_id())

    @app.not_found
    def no_route(_error: NotFoundError) -> Response[str]:
        path = app.current_event.path
        return problems.answer(NotFound("route", f"{app.current_event.http_method} {path}"), request_id())

    @app.exception_handler(Exception)  # type: ignore[untyped-decorator]
    def failed(error: Exception) -> Response[str]:
        logger.error("failed", exc_info=error)
        return problems.broken(request_id())

    return app


def router() -> APIGatewayHttpRouter:
    """Routes for a resolver to include."""
    return APIGatewayHttpRouter()  # type: ignore[no-untyped-call]


def actor(event: APIGatewayProxyEventV2) -> Actor:
    """The person whose token API Gateway has verified.

    Groups are read from the token itself: API Gateway flattens a list claim into text, where a group named
    "a b" can't be told from two groups.
    """
    claims: Mapping[str, Any] = event.request_context.authorizer.jwt_claim or {}
    groups = _groups(event.headers.get("authorization", ""))
    return Actor(subject=str(claims["sub"]), platform_admin=bootstrap.settings().admin_group in groups)


def _groups(authorization: str) -> list[str]:
    """The groups of a bearer token whose signature has been verified already (RFC 7519, section 3)."""
    payload = authorization.rpartition(" ")[2].split(".")[1:2]
    if not payload:
        return []
    claims = json.loads(base64.urlsafe_b64decode(payload[0] + "=" * (-len(payload[0]) % 4)))
    found = claims.get("cognito:groups", claims.get("groups", []))
    return [found] if isinstance(found, str) else [str(each) for each in found]
