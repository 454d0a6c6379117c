"""DynamoDB: one request at a time, and no wrong answer that AWS would refuse."""

from __future__ import annotations

import json
import re
import time
from threading import RLock
from typing import Any

from moto.core.responses import ActionResult
from moto.dynamodb.exceptions import ERROR_TYPE_PREFIX, DynamodbException, MockValidationException
from moto.dynamodb.models.table import StreamRecord, StreamShard
from moto.dynamodb.responses import DynamoHandler

from tensorant_local.aws import streams
from tensorant_local.aws.mending import Mends

EXPRESSIONS = (
    "ConditionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "ProjectionExpression",
    "UpdateExpression",
)
TOKEN_SECONDS = 600
"""How long a ClientRequestToken is remembered.

Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

mends = Mends()
apply = mends.apply
_one_at_a_time = RLock()
_pending: list[tuple[StreamShard, StreamRecord]] = []


@mends(DynamoHandler, "call_action")
def concurrent_writes_are_lost(original: Any, handler: Any) -> Any:
    """Moto's tables aren't thread-safe: of 1,000 concurrent increments 980 remained.

    Stream records are sent once the request has succeeded: a cancelled transaction has none.
    """
    with _one_at_a_time:
        _pending.clear()
        answer = original(handler)
        if int(answer[0]) < 400:  # noqa: PLR2004 - HTTP
            for shard, record in _pending:
                _send(shard, record)
        _pending.clear()
        return answer


@mends(StreamShard, "add")
def rolled_back_writes_are_streamed(_original: Any, shard: Any, old: Any, new: Any) -> None:
    """Moto also sent old records again, and numbered new ones like old ones."""
    view = shard.table.stream_specification["StreamViewType"]
    name = "INSERT" if old is None else "REMOVE" if new is None else "MODIFY"
    number = shard.starting_sequence_number + len(shard.items)
    record = StreamRecord(shard.table, view, name, old, new, number)
    shard.items.append(record)
    _pending.append((shard, record))


def _send(shard: Any, record: Any) -> None:
    for mapping in shard.table.lambda_event_source_mappings.values():
        streams.hand_over(mapping, record)


@mends(DynamoHandler, "transact_write_items")
def a_repeated_transaction_is_made_twice(original: Any, handler: Any) -> Any:
    """ClientRequestToken makes TransactWriteItems idempotent."""
    for item in handler.body["TransactItems"]:
        _refuse_unused(next(iter(item.values())))
    token = handler.body.get("ClientRequestToken")
    if not token:
        return original(handler)
    seen = handler.dynamodb_backend.__dict__.setdefault("seen_transactions", {})
    request = json.dumps(handler.body, sort_keys=True, default=str)
    known, at = seen.get(token, (None, 0.0))
    if known is not None and time.monotonic() - at < TOKEN_SECONDS:
        if known != request:
            raise DynamodbException(
                f"{ERROR_TYPE_PREFIX}IdempotentParameterMismatchException",
                "The token was used with other parameters.",
            )
        return ActionResult({})
    answer = original(handler)
    seen[token] = (request, time.monotonic())
    return answer


def _mend_unused(action: str) -> None:
    @mends(DynamoHandler, action)
    def unused_names_and_values_are_accepted(original: Any, handler: Any) -> Any:
        """Of single requests."""
        _refuse_unused(handler.body)
        return original(handler)


for _action in ("put_item", "update_item", "delete_item", "query", "scan"):
    _mend_unused(_action)


def _refuse_unused(request: dict[str, Any]) -> None:
    """AWS: every name and value given must be used in an expression."""
    text = " ".join(str(request[name]) for name in EXPRESSIONS if request.get(name))
    for parameter, pattern in (("ExpressionAttributeNames", r"#\w+"), ("ExpressionAttributeValues", r":\w+")):
        unused = set(request.get(parameter) or {}) - set(re.findall(pattern, text))
        if unused and text:
            keys = ", ".join(sorted(unused))
            message = f"Value provided in {parameter} unused in expressions: keys: {{{keys}}}"
            raise MockValidationException(message)
