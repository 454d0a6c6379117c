"""A table's stream, followed by a function: filtered, in batches, in order, beside the write.

moto runs the function inside the write, one record at a time, so that a function which uses the table would
wait for itself.
"""

from __future__ import annotations

import functools
import json
import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from moto.core.utils import unix_time
from moto.events.models import EventPattern

from tensorant_local.aws import lambdas
from tensorant_local.aws.running import cloud

if TYPE_CHECKING:
    from collections.abc import Sequence

_log = logging.getLogger(__name__)


def hand_over(mapping: Any, record: Any) -> None:
    """Give a stream record to an event source mapping, which is moto's."""
    told = _as_told(record.to_json(), mapping)
    if not mapping.enabled or not _chosen(mapping, told):
        return
    waiting: deque[dict[str, Any]] = mapping.__dict__.setdefault("waiting", deque())
    waiting.append(told)
    cloud().background.in_order(mapping.arn, functools.partial(_deliver_waiting, mapping, waiting))


def _as_told(record: dict[str, Any], mapping: Any) -> dict[str, Any]:
    change = dict(record["dynamodb"])
    created = change.get("ApproximateCreationDateTime")
    if created is not None and not isinstance(created, int | float):
        change["ApproximateCreationDateTime"] = unix_time(created)
    return record | {
        "dynamodb": change,
        "awsRegion": mapping.region,
        "eventSourceARN": mapping.event_source_arn,
    }


def _chosen(mapping: Any, record: dict[str, Any]) -> bool:
    """One of the filters is enough.

    Source: https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
    """
    filters = (mapping.filter_criteria or {}).get("Filters", [])
    return not filters or any(EventPattern.load(each["Pattern"]).matches_event(record) for each in filters)


def _deliver_waiting(mapping: Any, waiting: deque[dict[str, Any]]) -> None:
    """All that came while the function was busy goes in one batch, up to the mapping's size."""
    batch = [waiting.popleft() for _ in range(min(len(waiting), mapping.batch_size))]
    if batch:
        _deliver(mapping, batch)


def _deliver(mapping: Any, batch: Sequence[dict[str, Any]]) -> None:
    """A batch that fails is split in two, if the mapping says so, until the bad record stands alone."""
    payload = json.dumps({"Records": batch}).encode()
    if mapping.bisect_on_error and len(batch) > 1:
        if lambdas.problem_of(_name(mapping), payload):
            middle = len(batch) // 2
            _deliver(mapping, batch[:middle])
            _deliver(mapping, batch[middle:])
        return
    problem = None
    for _ in range(1 + _retries(mapping)):
        problem = lambdas.problem_of(_name(mapping), payload)
        if not problem:
            return
    _log.warning("%s did not take its stream records: %s", _name(mapping), problem)


def _retries(mapping: Any) -> int:
    """None is given as -1, which on AWS means until the record is a day old."""
    told = mapping.max_retry_attempts
    return lambdas.RETRIES if told is None or told < 0 else int(told)


def _name(mapping: Any) -> str:
    return str(mapping.function_arn.split(":")[6])
