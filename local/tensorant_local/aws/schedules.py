"""EventBridge schedules: moto keeps their rules and never fires them."""

from __future__ import annotations

import functools
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from moto.core.utils import unix_time
from moto.events.models import EventsBackend, events_backends

from tensorant_local.aws.events import SCHEDULED, SCHEDULER
from tensorant_local.aws.mending import Mends
from tensorant_local.aws.running import cloud

if TYPE_CHECKING:
    from collections.abc import Iterator

RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")

mends = Mends()
apply = mends.apply


class UnknownSchedule(Exception):
    """A schedule that is no rate."""


def period(expression: str) -> timedelta:
    """How long a rate takes. Raises UnknownSchedule for cron expressions, which nothing here can keep.

    Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-scheduled-rule-pattern.html
    """
    match = RATE.fullmatch(expression)
    if match is None:
        raise UnknownSchedule(expression)
    return timedelta(**{f"{match[2]}s": int(match[1])})


def fire_all() -> None:
    """Let every enabled schedule fire now, besides its own times."""
    for rule in _scheduled_rules():
        _fire(rule)


@mends(EventsBackend, "put_rule")
def schedules_never_fire(original: Any, backend: Any, *args: Any, **kwargs: Any) -> Any:
    """The first time comes one period after the rule was made; rules made anew begin anew."""
    rule = original(backend, *args, **kwargs)
    if rule.scheduled_expression and cloud().schedules_fire:
        _wait(rule)
    return rule


def _wait(rule: Any) -> None:
    seconds = period(rule.scheduled_expression).total_seconds() * cloud().time_scale
    cloud().background.later(seconds, functools.partial(_tick, rule))


def _tick(rule: Any) -> None:
    if any(each is rule for each in _scheduled_rules()):
        _fire(rule)
        _wait(rule)


def _scheduled_rules() -> Iterator[Any]:
    for account in list(events_backends.values()):
        for backend in list(account.values()):
            rules = [rule for bus in list(backend.event_buses.values()) for rule in list(bus.rules.values())]
            yield from (rule for rule in rules if rule.scheduled_expression)


def _fire(rule: Any) -> None:
    rule.send_to_targets(
        {
            "version": "0",
            "id": str(uuid4()),
            "detail-type": SCHEDULED,
            "source": SCHEDULER,
            "account": rule.account_id,
            "time": unix_time(),
            "region": rule.region_name,
            "resources": [rule.arn],
            "detail": {},
        }
    )
