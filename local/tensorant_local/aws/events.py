"""EventBridge: events of AWS itself, and delivery to functions, state machines and buses elsewhere."""

from __future__ import annotations

import functools
import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from moto.core.utils import unix_time
from moto.events.models import Rule, events_backends
from moto.events.responses import EventsHandler

from tensorant_local.aws import event_buses, lambdas
from tensorant_local.aws.mending import Mends
from tensorant_local.aws.running import cloud

if TYPE_CHECKING:
    from collections.abc import Callable

ENVELOPE = ("version", "id", "detail-type", "source", "account", "time", "region", "resources", "detail")
"""The fields of an event, in the order of the EventBridge guide."""
PLACEHOLDER = re.compile(r"<([^<>]+)>")
PATH_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
MISSING = object()
SCHEDULER, SCHEDULED = "aws.events", "Scheduled Event"
"""The source and the kind of event that a schedule sends to its rule's own targets."""

mends = Mends()
apply = mends.apply


def emit(
    account_id: str,
    region: str,
    *,
    source: str,
    detail_type: str,
    detail: dict[str, Any],
    resources: list[str],
) -> None:
    """Put an event of AWS itself on the account's default bus."""
    entry = {
        "Source": source,
        "DetailType": detail_type,
        "Detail": json.dumps(detail),
        "Resources": resources,
    }
    events_backends[account_id][region].put_events([entry])


@mends(EventsHandler, "put_events")
def anyone_can_speak_for_aws(original: Any, handler: Any) -> str:
    """PutEvents refuses sources that begin with `aws.`, entry by entry, and reaches buses of other accounts."""
    entries, backend = handler._get_param("Entries"), handler.events_backend
    if all(_is_plain(entry, backend.account_id) for entry in entries):
        return str(original(handler))
    for entry in entries:
        _require_permission(backend.account_id, entry)
    answers = [_put(backend, entry) for entry in entries]
    failed = sum("ErrorCode" in answer for answer in answers)
    return json.dumps({"FailedEntryCount": failed, "Entries": answers})


def _is_plain(entry: dict[str, Any], sender: str) -> bool:
    forged = entry.get("Source", "").startswith("aws.")
    return not forged and not event_buses.is_elsewhere(entry.get("EventBusName") or "", sender)


def _require_permission(sender: str, entry: dict[str, Any]) -> None:
    """One event that may not be put refuses the whole request."""
    bus = entry.get("EventBusName") or ""
    if event_buses.is_elsewhere(bus, sender):
        event = {"source": entry.get("Source"), "detail-type": entry.get("DetailType")}
        event_buses.require_permission(bus, sender=sender, event=event)


def _put(backend: Any, entry: dict[str, Any]) -> dict[str, Any]:
    if entry.get("Source", "").startswith("aws."):
        return _not_authorized(entry)
    bus = entry.get("EventBusName") or ""
    if not event_buses.is_elsewhere(bus, backend.account_id):
        return dict(backend.put_events([entry])[0])
    event = {
        "version": "0",
        "id": str(uuid4()),
        "detail-type": entry["DetailType"],
        "source": entry["Source"],
        "account": backend.account_id,
        "time": entry.get("Time", unix_time()),
        "region": backend.region_name,
        "resources": entry.get("Resources", []),
        "detail": json.loads(entry["Detail"]),
    }
    event_buses.put(bus, event)
    return {"EventId": event["id"]}


def _not_authorized(entry: dict[str, Any]) -> dict[str, str]:
    message = f"Not authorized for the source {entry['Source']}."
    return {"ErrorCode": "NotAuthorizedForSourceException", "ErrorMessage": message}


@mends(Rule, "send_to_targets")
def functions_and_state_machines_are_no_targets(
    original: Any, rule: Any, original_event: dict[str, Any], *args: Any, **kwargs: Any
) -> None:
    """And disabled rules fire, schedules match every event, `time` is a float, and other buses rewrite events."""
    if rule.state == "DISABLED" or not _concerns(rule, original_event):
        return
    rest = []
    for target in rule.targets:
        if deliver := _delivery(rule, target, original_event):
            cloud().background.soon(deliver)
        else:
            rest.append(target)
    if rest:
        _with_targets(original, rule, rest, original_event, *args, **kwargs)


def _delivery(rule: Any, target: dict[str, Any], event: dict[str, Any]) -> Callable[[], None] | None:
    """How a target gets an event; None where moto's own way will do."""
    arn = target["Arn"]
    if event_buses.is_bus(arn):
        return functools.partial(event_buses.forward, rule, target, event)
    deliver = {"lambda": _to_function, "states": _to_state_machine}.get(arn.split(":")[2])
    return functools.partial(deliver, arn, _input(target, _as_delivered(event), rule)) if deliver else None


def _concerns(rule: Any, event: dict[str, Any]) -> bool:
    """Its own schedule's event, or one that its pattern matches; a rule with a schedule may have no pattern."""
    if event["source"] == SCHEDULER and event["detail-type"] == SCHEDULED:
        return bool(event["resources"] == [rule.arn])
    pattern = rule.event_pattern
    return bool(pattern.get_pattern()) and bool(pattern.matches_event(event))


def _with_targets(original: Any, rule: Any, targets: list[Any], *args: Any, **kwargs: Any) -> None:
    stand_in = object.__new__(Rule)
    stand_in.__dict__ = rule.__dict__ | {"targets": targets}
    original(stand_in, *args, **kwargs)


def _as_delivered(event: dict[str, Any]) -> dict[str, Any]:
    moment = event["time"]
    if isinstance(moment, int | float):
        moment = datetime.fromtimestamp(moment, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {name: event[name] for name in ENVELOPE if name in event} | {"time": moment}


def _to_function(arn: str, payload: str) -> None:
    lambdas.invoke_later(arn.split(":function:")[1].split(":", maxsplit=1)[0], payload.encode())


def _to_state_machine(arn: str, payload: str) -> None:
    from moto.stepfunctions.parser.models import stepfunctions_parser_backends  # noqa: PLC0415 - it imports this module

    _, _, _, region, account_id, *_ = arn.split(":")
    stepfunctions_parser_backends[account_id][region].start_execution(arn, None, payload)


# -- what a target is given --------------------------------------------------------------------------------


def _input(target: dict[str, Any], event: dict[str, Any], rule: Any) -> str:
    """The target's input as JSON text: constant, part of the event, transformed, or the event."""
    if "Input" in target:
        return str(target["Input"])
    if path := target.get("InputPath"):
        return _outside_quotes(_found(event, path))
    if transformer := target.get("InputTransformer"):
        return _transformed(transformer, event, rule)
    return json.dumps(event)


def _transformed(transformer: dict[str, Any], event: dict[str, Any], rule: Any) -> str:
    """Fill in an input template: raw text inside quotes, JSON outside.

    Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html
    """
    values = {name: _found(event, path) for name, path in transformer.get("InputPathsMap", {}).items()}
    values |= {
        "aws.events.rule-arn": rule.arn,
        "aws.events.rule-name": rule.name,
        "aws.events.event.ingestion-time": event["time"],
        "aws.events.event": {name: value for name, value in event.items() if name != "detail"},
        "aws.events.event.json": event,
    }
    template = transformer["InputTemplate"]

    def filled(match: re.Match[str]) -> str:
        value = values.get(match[1], MISSING)
        return _inside_quotes(value) if _quoted(template, match.start()) else _outside_quotes(value)

    return PLACEHOLDER.sub(filled, template)


def _quoted(template: str, position: int) -> bool:
    return len(re.findall(r'(?<!\\)"', template[:position])) % 2 == 1


def _inside_quotes(value: Any) -> str:
    if value is MISSING:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    return json.dumps(text)[1:-1]


def _outside_quotes(value: Any) -> str:
    return "null" if value is MISSING else json.dumps(value)


def _found(event: dict[str, Any], path: str) -> Any:
    """Follow a JSON path of names and indexes; `MISSING` where it leads nowhere."""
    value: Any = event
    for name, index in PATH_STEP.findall(path.removeprefix("$")):
        try:
            value = value[int(index)] if index else value[name]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value
