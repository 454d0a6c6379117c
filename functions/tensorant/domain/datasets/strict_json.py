"""A row's JSON as the standard means it: what two readers could understand differently is refused."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from tensorant.domain.datasets.faults import RowError

MAX_DEPTH = 64
"""Of objects and lists within each other; schemas of tools need the most."""

_ROLE_AND_CONTENT = 2

ONE_OBJECT = "Write one JSON object on each line."


def parse(line: bytes) -> dict[str, Any]:
    """The object of a line without blanks around it. Raises `RowError`."""
    try:
        row, end = _decoder.raw_decode(line.decode())
    except UnicodeDecodeError as error:
        message = f"The row is not UTF-8 at its byte {error.start + 1}."
        raise RowError("", message, "Save the file as UTF-8.") from None
    except json.JSONDecodeError as error:
        raise RowError(
            "", f"The row is not JSON: {error.msg} at character {error.pos + 1}.", ONE_OBJECT
        ) from None
    except RecursionError:
        raise _too_deep("") from None
    except ValueError as error:  # ours below, and integers of thousands of digits
        raise RowError("", f"The row is not strict JSON: {error}.", ONE_OBJECT) from None
    if end != len(line) and end != len(line.decode()):
        raise RowError("", f"The row is not JSON: more text after character {end}.", ONE_OBJECT)
    if type(row) is not dict:
        raise RowError("", f"The row is {named(row)}, not an object.", ONE_OBJECT)
    return row


def named(value: object) -> str:
    """What a JSON value is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Called for every object of every row, nearly always for a role and a content."""
    if len(pairs) == _ROLE_AND_CONTENT:
        (first, one), (second, other) = pairs
        if first != second:
            return {first: one, second: other}
    values = dict(pairs)
    if len(values) != len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {key[:40]!a} is there twice")
    return values


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number


_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)


def require_shallow(value: object, field: str) -> None:
    """Raise `RowError` for what is nested too deep for those who read it later."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer if type(outer) is list else ())
            if type(inner) in {dict, list}
        ]
        if not level:
            return
    raise _too_deep(field)


def _too_deep(field: str) -> RowError:
    return RowError(field, f"It is nested deeper than {MAX_DEPTH} levels.", "Flatten it.")
