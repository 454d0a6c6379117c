"""A request as the function sees it, and its answer as the caller sees it: payload format 2.0.

Format: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from tensorant_local.jwt_authorizer import Claims, as_strings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ACCOUNT_ID = "123456789012"

_TEXT = ("text/", "application/json", "application/javascript", "application/xml")


@dataclass(frozen=True)
class Request:
    """What came over the wire. `target` is the path and query as sent; header names are in lower case."""

    id: str
    method: str
    target: str
    headers: Sequence[tuple[str, str]]
    body: bytes
    host: str
    source_ip: str
    protocol: str = "HTTP/1.1"

    @property
    def path(self) -> str:
        """Decoded, as API Gateway both matches it and hands it on."""
        return unquote(self.target.partition("?")[0])

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


@dataclass(frozen=True)
class Response:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: Sequence[str] = ()

    @classmethod
    def message(cls, status: int, text: str) -> Response:
        """API Gateway's own answers."""
        return cls(status, json.dumps({"message": text}).encode(), {"content-type": "application/json"})


class MalformedResponse(Exception):
    """The function's answer is none that payload 2.0 knows; the caller gets a 500."""


def event(
    request: Request, *, api_id: str, route_key: str, parameters: Mapping[str, str], claims: Claims | None
) -> dict[str, Any]:
    """The event of payload format 2.0; optional keys are absent rather than empty."""
    optional = {
        "cookies": _cookies(request),
        "queryStringParameters": _joined(parse_qsl(request.query, keep_blank_values=True)),
        "pathParameters": dict(parameters),
        **_body(request),
    }
    return {
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": request.path,
        "rawQueryString": request.query,
        "headers": _headers(request),
        "requestContext": _context(request, api_id=api_id, route_key=route_key, claims=claims),
        "isBase64Encoded": _is_binary(request),
        **{name: value for name, value in optional.items() if value},
    }


def response(payload: bytes) -> Response:
    """What the caller gets for a function's answer. Raises MalformedResponse."""
    try:
        answer = json.loads(payload)
    except ValueError as error:
        raise MalformedResponse("the answer is not JSON") from error
    if not isinstance(answer, dict) or "statusCode" not in answer:
        return Response(200, payload, {"content-type": "application/json"})
    body = answer.get("body") or ""
    if not isinstance(body, str):
        raise MalformedResponse("the body is not a string")
    headers = {name.lower(): str(value) for name, value in (answer.get("headers") or {}).items()}
    return Response(
        status=_status(answer["statusCode"]),
        body=base64.b64decode(body) if answer.get("isBase64Encoded") else body.encode(),
        headers={"content-type": "text/plain; charset=utf-8", **headers},
        cookies=tuple(answer.get("cookies") or ()),
    )


def _status(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        raise MalformedResponse(f"{value!r} is no status") from error


def _context(request: Request, *, api_id: str, route_key: str, claims: Claims | None) -> dict[str, Any]:
    now = datetime.now(UTC)
    authorizer = {"authorizer": {"jwt": {"claims": as_strings(claims), "scopes": None}}} if claims else {}
    return {
        "accountId": ACCOUNT_ID,
        "apiId": api_id,
        **authorizer,
        "domainName": request.host,
        "domainPrefix": request.host.split(".")[0],
        "http": {
            "method": request.method,
            "path": request.path,
            "protocol": request.protocol,
            "sourceIp": request.source_ip,
            "userAgent": request.header("user-agent") or "",
        },
        "requestId": request.id,
        "routeKey": route_key,
        "stage": "$default",
        "time": now.strftime("%d/%b/%Y:%H:%M:%S +0000"),
        "timeEpoch": int(now.timestamp() * 1000),
    }


def _headers(request: Request) -> dict[str, str]:
    own = [("x-forwarded-for", request.source_ip), ("x-forwarded-proto", "http")]
    return _joined([*((name, value) for name, value in request.headers if name != "cookie"), *own])


def _cookies(request: Request) -> list[str]:
    lines = [value for name, value in request.headers if name == "cookie"]
    return [cookie.strip() for line in lines for cookie in line.split(";") if cookie.strip()]


def _joined(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Repeated names become one, their values joined with commas."""
    joined: dict[str, str] = {}
    for name, value in pairs:
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def _body(request: Request) -> dict[str, str]:
    if not request.body:
        return {}
    if _is_binary(request):
        return {"body": base64.b64encode(request.body).decode()}
    return {"body": request.body.decode()}


def _is_binary(request: Request) -> bool:
    """Whether the body is handed on in base64: whatever is not declared, or is not really, text."""
    declared = request.header("content-type") or "text/plain"
    if not request.body:
        return False
    if not declared.startswith(_TEXT):
        return True
    try:
        request.body.decode()
    except UnicodeDecodeError:
        return True
    return False
