"""AWS's JSON protocol for the services that moto lacks: one request in, one answer or one named refusal out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tensorant_local.aws import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from wsgiref.types import StartResponse, WSGIEnvironment

    Action = Callable[[dict[str, Any]], dict[str, Any]]


class RefusedError(Exception):
    """A refusal, by the API's name for it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def is_for(service: str, environ: WSGIEnvironment) -> bool:
    """Whether a request is addressed to the service, by its name in `X-Amz-Target`."""
    return str(environ.get("HTTP_X_AMZ_TARGET", "")).startswith(f"{service}.")


def answer(
    environ: WSGIEnvironment, start_response: StartResponse, actions: Mapping[str, Action]
) -> Iterable[bytes]:
    """Answer one request, as a WSGI application does."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    request = json.loads(environ["wsgi.input"].read(length) or b"{}")
    name = environ["HTTP_X_AMZ_TARGET"].split(".")[1]
    try:
        status, body = "200 OK", _acted(name, request, actions)
    except RefusedError as error:
        status, body = "400 Bad Request", {"__type": error.code, "message": str(error)}
    payload = json.dumps(body).encode()
    headers = [("Content-Type", "application/x-amz-json-1.1"), ("Content-Length", str(len(payload)))]
    start_response(status, headers)
    return [payload]


def _acted(name: str, request: dict[str, Any], actions: Mapping[str, Action]) -> dict[str, Any]:
    code = running.cloud().refused_actions.get(name)
    if code is not None:
        raise RefusedError(code, "Refused, as this cloud was told.")
    if name not in actions:
        raise RefusedError("UnknownOperationException", f"{name} is not part of the embedded cloud")
    return actions[name](request)
