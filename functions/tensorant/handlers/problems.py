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

from tensorant.domain.connections import ConnectionKind, CredentialKind
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

CHANGED = "changed_meanwhile"

OURS = "fault"
"""Type of the faults that tell our own code, message and mend."""

TAG_FAULTS = {"union_tag_invalid", "union_tag_not_found"}
"""The field that says the kind of the rest is wrong, or missing: it is named `kind` everywhere."""

SAYINGS = {
    "extra_forbidden": ("This is no field of the request.", "Remove the field, or check its spelling."),
    "missing": ("This is missing.", "Add the field."),
    "json_invalid": ("The request is not JSON.", "Send a JSON object."),
    "model_type": ("This must be an object.", "Send a JSON object."),
    "model_attributes_type": ("This must be an object.", "Send a JSON object."),
    "dict_type": ("This must be an object.", "Send a JSON object."),
    "list_type": ("This must be a list.", "Send a list, even of one."),
    "string_type": ("This must be text.", "Send text, in quotation marks."),
    "string_too_short": ("This is too short: at least {min_length} in length.", "Send the whole of it."),
    "string_too_long": ("This is too long: at most {max_length} in length.", "Shorten it."),
    "too_short": ("This is too short: at least {min_length}.", "Send the whole of it."),
    "too_long": ("This is too long: at most {max_length}.", "Send less."),
    "enum": ("This must be {expected}.", "Send one of the values that are named."),
    "literal_error": ("This must be {expected}.", "Send one of the values that are named."),
    "timezone_aware": ("The time zone is missing.", "Add it, for instance as in 2026-03-01T20:00:00Z."),
    "datetime_type": ("This must be a time.", "Send it as in 2026-03-01T20:00:00Z."),
    "datetime_parsing": ("This is no time.", "Send it as in 2026-03-01T20:00:00Z."),
    "datetime_from_date_parsing": ("This is no time.", "Send it as in 2026-03-01T20:00:00Z."),
    "union_tag_invalid": ("There is no such kind.", "Use one of {expected_tags}."),
    "union_tag_not_found": (
        "It is not said of which kind this is.",
        f"Use one of {', '.join(ConnectionKind)}.",
    ),
}
"""Message and mend of pydantic's faults, by their types; of all others pydantic's own message is told."""


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
    kind, told = str(fault["type"]), {**fault.get("ctx", {})}
    field = _field([*_named(fault["loc"]), *(["kind"] if kind in TAG_FAULTS else [])])
    code = kind
    if kind == OURS:
        code, message, mend = told["code"], told["told"], told["mend"]
    elif kind in SAYINGS:
        told["expected_tags"] = str(told.get("expected_tags", "")).replace("'", "")
        message, mend = (words.format(**told) for words in SAYINGS[kind])
    else:
        message, mend = f"{fault['msg']}.", "Correct the value."
    return problem(code, f"{field}: {message}" if field else message, mend, request_id, field=field or None)


def _named(location: Sequence[Any]) -> list[Any]:
    """Without where in the request it was, and without the tags that pydantic puts before the fields of a kind."""
    parts = [part for part in location if part not in {"body", "query", "path"}]
    if parts and parts[0] in set(ConnectionKind):
        parts = parts[1:]
    tagged = len(parts) > 1 and parts[0] == "credentials" and parts[1] in set(CredentialKind)
    return [parts[0], *parts[2:]] if tagged else parts


def _field(parts: Sequence[Any]) -> str:
    named = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return named.removeprefix(".")
