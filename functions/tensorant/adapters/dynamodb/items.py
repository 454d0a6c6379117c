"""Between domain values and table items: one JSON-like map an item, unknown fields tolerated when read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeVar

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from pydantic import TypeAdapter

T = TypeVar("T")

_serialize = TypeSerializer().serialize
_deserialize = TypeDeserializer().deserialize


def body(value: object) -> dict[str, Any]:
    """A domain value as a map of strings, numbers, lists and maps; money stays a decimal string."""
    dumped: dict[str, Any] = _adapter(type(value)).dump_python(value, mode="json")
    dumped.pop("version", None)
    return dumped


def value(kind: type[T], item: Mapping[str, Any]) -> T:
    """The domain value of an item as stored under `body`, with the item's version where it has one."""
    fields = dict(plain(item["body"]))
    if "version" in item:
        fields["version"] = int(item["version"])
    found: T = _adapter(kind).validate_python(fields)
    return found


def marshalled(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item as the DynamoDB client takes it."""
    return {name: _serialize(_exact(each)) for name, each in item.items()}


def unmarshalled(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _deserialize(each) for name, each in item.items()}


def plain(each: Any) -> Any:
    """DynamoDB's numbers as Python's."""
    match each:
        case Decimal():
            return int(each) if each == each.to_integral_value() else float(each)
        case dict():
            return {name: plain(inner) for name, inner in each.items()}
        case list():
            return [plain(inner) for inner in each]
        case _:
            return each


def _exact(each: Any) -> Any:
    """Floats as decimals, since DynamoDB takes no floats; what is no number (a diverged loss) as nothing."""
    match each:
        case float():
            return Decimal(repr(each)) if math.isfinite(each) else None
        case dict():
            return {name: _exact(inner) for name, inner in each.items()}
        case list() | tuple():
            return [_exact(inner) for inner in each]
        case _:
            return each


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def _adapter(kind: type) -> TypeAdapter[Any]:
    """Made once for each kind: building a validator takes milliseconds, using it microseconds."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]
