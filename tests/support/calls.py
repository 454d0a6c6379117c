"""Calling handlers as AWS does, with events that are kept as fixtures."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

EVENTS = Path(__file__).parents[1] / "fixtures" / "events"
CONTEXT = SimpleNamespace(
    function_name="tensorant-test",
    memory_limit_in_mb=512,
    invoked_function_arn="arn:aws:lambda:us-east-1:123456789012:function:tensorant-test",
    aws_request_id="invocation-1",
    get_remaining_time_in_millis=lambda: 29_000,
)


def fixture_of(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return loaded


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.body["error"]
        return error


@dataclass(frozen=True)
class Caller:
    """Calls a handler as API Gateway does."""

    handler: Callable[[dict[str, Any], Any], dict[str, Any]]
    template: dict[str, Any]
    claims: dict[str, Any] = field(default_factory=dict)

    def as_(self, subject: str, **claims: Any) -> Caller:
        """Signed in with a token of these claims."""
        return Caller(self.handler, self.template, {"sub": subject, **claims})

    def get(self, path: str, query: str = "") -> Answer:
        return self.call("GET", path, query=query)

    def post(self, path: str, body: Any = None, *, token: str | None = None) -> Answer:
        return self.call("POST", path, body=body, token=token)

    def call(
        self, method: str, path: str, *, body: Any = None, query: str = "", token: str | None = None
    ) -> Answer:
        event = copy.deepcopy(self.template)
        event["rawPath"] = event["requestContext"]["http"]["path"] = path
        event["requestContext"]["http"]["method"] = method
        event["rawQueryString"] = query
        if query:
            event["queryStringParameters"] = dict(pair.split("=") for pair in query.split("&"))
        if body is not None:
            event["body"] = body if isinstance(body, str) else json.dumps(body)
        if token is not None:
            event["headers"]["authorization"] = f"Bearer {token}"
        if "authorizer" in event["requestContext"]:
            flat = {name: flattened(value) for name, value in self.claims.items()}
            event["requestContext"]["authorizer"]["jwt"]["claims"] |= flat
            event["headers"]["authorization"] = f"Bearer {signed_in(self.claims)}"
        answer = self.handler(event, CONTEXT)
        return Answer(answer["statusCode"], json.loads(answer["body"]))


def signed_in(claims: dict[str, Any]) -> str:
    """A token of these claims, whose signature API Gateway would have verified."""
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJSUzI1NiJ9.{payload}.c2ln"


def flattened(value: Any) -> str:
    """A claim as API Gateway hands it on: a list becomes text."""
    return f"[{' '.join(value)}]" if isinstance(value, list) else str(value)
