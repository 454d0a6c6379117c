"""The one shape of an error answer, and which status each error of the domain has.

    {"error": {"code": …, "field": …, "message": …, "mend": …, "request_id": …}, "also": […]}

`code` is stable, `field` is null where no field is to blame, `also` lists further faults of the request.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import Response, content_types

from tensorant.domain.connections import ConnectionKind
from tensorant.domain.errors import (
    Conflict,
    Ended,
    Forbidden,
    Invalid,
    NotFound,
    ProviderError,
    ProviderFault,
    Storage,
    TensorantError,
    Throttled,
    Unauthenticated,
)

STATUS: tuple[tuple[type[TensorantError], HTTPStatus], ...] = (
    (Invalid, HTTPStatus.UNPROCESSABLE_ENTITY),
    (Unauthenticated, HTTPStatus.UNAUTHORIZED),
    (Forbidden, HTTPStatus.FORBIDDEN),
    (NotFound, HTTPStatus.NOT_FOUND),
    (Conflict, HTTPStatus.CONFLICT),
    (Ended, HTTPStatus.GONE),
    (Throttled, HTTPStatus.SERVICE_UNAVAILABLE),
    (ProviderFault, HTTPStatus.SERVICE_UNAVAILABLE),
    (Storage, HTTPStatus.SERVICE_UNAVAILABLE),
    (ProviderError, HTTPStatus.CONFLICT),
)

TAG_FAULTS = {"union_tag_invalid", "union_tag_not_found"}

CHANGED = "changed_meanwhile"

MENDS = {
    "extra_forbidden": "Remove the field, or check its spelling.",
    "missing": "Add the field.",
    "json_invalid": "Send a JSON object.",
    "union_tag_invalid": f"Use one of {', '.join(ConnectionKind)}.",
    "union_tag_not_found": f"Add the field: one of {', '.join(ConnectionKind)}.",
}


def answer(error: TensorantError, request_id: str) -> Response[str]:
    """The response to an error of the domain."""
    lost_race = isinstance(error, Conflict) and error.code == CHANGED
    kind = ProviderFault if lost_race else type(error)
    status = next(
        (status for known, status in STATUS if issubclass(kind, known)), HTTPStatus.INTERNAL_SERVER_ERROR
    )
    return response(status, [problem(error.code, error.message, error.mend, request_id, field=error.field)])


def invalid(faults: Sequence[Any], request_id: str) -> Response[str]:
    """The response to a request whose shape is wrong; every fault is told at once."""
    problems = [_of_fault(fault, request_id) for fault in faults]
    return response(HTTPStatus.UNPROCESSABLE_ENTITY, problems)


def broken(request_id: str) -> Response[str]:
    """The response to our own fault, which says nothing of its inside."""
    mend = "Try again; if it stays, give your administrator the request id."
    return response(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        [problem("internal", "Something went wrong here.", mend, request_id)],
    )


def problem(
    code: str, message: str, mend: str, request_id: str, *, field: str | None = None
) -> dict[str, Any]:
    return {"code": code, "field": field, "message": message, "mend": mend, "request_id": request_id}


def response(status: HTTPStatus, problems: Sequence[dict[str, Any]]) -> Response[str]:
    body = {"error": problems[0], "also": list(problems[1:])}
    return Response(status.value, content_types.APPLICATION_JSON, json.dumps(body))


def _of_fault(fault: Any, request_id: str) -> dict[str, Any]:
    """A validation fault of pydantic in our words."""
    kind = str(fault["type"])
    field = "kind" if kind in TAG_FAULTS else _field(_named(fault["loc"]))
    message = f"{field}: {fault['msg']}." if field else f"{fault['msg']}."
    mend = MENDS.get(kind, "Correct the value.")
    return problem(kind, message, mend, request_id, field=field or None)


def _named(location: Sequence[Any]) -> list[Any]:
    """Without where in the request it was, and without the tag that pydantic puts before a connection's fields."""
    parts = [part for part in location if part not in {"body", "query", "path"}]
    return parts[1:] if parts and parts[0] in set(ConnectionKind) else parts


def _field(parts: Sequence[Any]) -> str:
    named = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return named.removeprefix(".")
