"""Event buses of other accounts and Regions: who may put events there, and rules that forward to them.

Source: EventBridge user guide, sending and receiving events between accounts, and between Regions.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from moto.core.exceptions import JsonRESTError
from moto.events.models import events_backends

if TYPE_CHECKING:
    from collections.abc import Mapping

PUT = "events:PutEvents"
CONDITIONS = {"events:source": "source", "events:detail-type": "detail-type"}
"""Condition keys that are understood, and the field of an event that each is about."""
OPERATORS = {"StringEquals", "ForAllValues:StringEquals"}
"""Both ask the same of a single event."""

_log = logging.getLogger(__name__)


class UnknownPolicy(Exception):
    """A bus's policy says what nothing here can judge."""


def require_known(statement: Mapping[str, Any]) -> None:
    """Raises UnknownPolicy if what a policy's statement says cannot be judged."""
    if statement["Effect"] != "Allow":
        raise UnknownPolicy(f"effect {statement['Effect']}")
    for operator, keys in statement.get("Condition", {}).items():
        for key in keys:
            if operator not in OPERATORS or key not in CONDITIONS:
                raise UnknownPolicy(f"condition {operator} on {key}")


def is_bus(arn: str) -> bool:
    return arn.startswith("arn:") and ":event-bus/" in arn


def is_elsewhere(arn: str, account_id: str) -> bool:
    """A bus of another account."""
    return is_bus(arn) and arn.split(":")[4] != account_id


def put(bus_arn: str, event: Mapping[str, Any]) -> None:
    """Let an event arrive at a bus, as it is."""
    for rule in list(_bus(bus_arn).rules.values()):
        rule.send_to_targets(dict(event))


def require_permission(bus_arn: str, *, sender: str, event: Mapping[str, Any]) -> None:
    """Raises AccessDeniedException unless the bus's policy lets the account `sender` put the event there."""
    if not _permits(_bus(bus_arn), sender, event):
        why = f"because no resource-based policy allows the {PUT} action"
        raise JsonRESTError(
            "AccessDeniedException",
            f"Account {sender} is not authorized to perform: {PUT} on resource: {bus_arn} {why}",
        )


def forward(rule: Any, target: Mapping[str, Any], event: Mapping[str, Any]) -> None:
    """Hand an event on to a target bus: with account, Region, id and time as they were.

    Only what began in the rule's own account and Region goes on, which keeps events from going round.
    A bus elsewhere takes a target with a role; what that role may do is not judged here.
    """
    problem = _why_not(rule, target, event)
    if problem:
        _log.warning("%s did not forward to %s: %s", rule.arn, target["Arn"], problem)
    else:
        put(target["Arn"], event)


def _why_not(rule: Any, target: Mapping[str, Any], event: Mapping[str, Any]) -> str | None:
    here, bus_arn = (rule.account_id, rule.region_name), target["Arn"]
    region, account_id = bus_arn.split(":")[3:5]
    if (event["account"], event["region"]) != here:
        return f"it came from {event['account']} in {event['region']} itself"
    if (account_id, region) != here and not target.get("RoleArn"):
        return "a bus of another account or Region takes a target with a role"
    if not _permits(_bus(bus_arn), rule.account_id, event):
        return "the bus's policy does not allow it"
    return None


def _bus(arn: str) -> Any:
    region, account_id, resource = arn.split(":", 5)[3:]
    return events_backends[account_id][region].describe_event_bus(resource.removeprefix("event-bus/"))


def _permits(bus: Any, sender: str, event: Mapping[str, Any]) -> bool:
    if sender == bus.account_id:
        return True
    statements = json.loads(bus.policy)["Statement"] if bus.policy else []
    return any(_allows(statement, bus.arn, sender, event) for statement in statements)


def _allows(statement: Mapping[str, Any], bus_arn: str, sender: str, event: Mapping[str, Any]) -> bool:
    require_known(statement)
    principals = statement["Principal"]
    named = ["*"] if principals == "*" else _listed(principals["AWS"])
    return (
        PUT in _listed(statement["Action"])
        and bus_arn in _listed(statement["Resource"])
        and bool({"*", sender, f"arn:aws:iam::{sender}:root"} & set(named))
        and all(
            event[CONDITIONS[key]] in _listed(values)
            for keys in statement.get("Condition", {}).values()
            for key, values in keys.items()
        )
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
