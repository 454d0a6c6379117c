"""JSON as the standard means it: what two readers could understand differently is refused."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any


def parse_object(data: bytes) -> dict[str, Any]:
    """One object in UTF-8. Raises ValueError, saying what is wrong.

    Refused: duplicate keys, NaN and infinities (also by overflow), a byte order mark, nesting too deep to read.
    """
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 at byte {error.start}") from error
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if not isinstance(value, dict):
        raise ValueError("it is not an object")  # noqa: TRY004  # one error for every defect of the text
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise ValueError(f"the key {counts.most_common(1)[0][0]!a} is there twice")
    return values


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number
