"""Reads a state machine in exactly the part of the Amazon States Language that ours uses.

Anything else raises `Unsupported` when the file is read: nothing is skipped in silence.
Source: Amazon States Language specification, and the Step Functions guide for its service integrations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

INVOKE = "arn:aws:states:::lambda:invoke"
INVOKE_AND_WAIT = f"{INVOKE}.waitForTaskToken"
TOKEN_PATH = "$$.Task.Token"
KEEP_INPUT = "null"
"""Stands for a ResultPath of null: the result is dropped."""

_PATH = re.compile(r"\$(\.[A-Za-z_][A-Za-z0-9_]*)*")
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z]+)\}")

_FIELDS: dict[str, tuple[set[str], set[str]]] = {
    # type: required, allowed
    "Task": (
        {"Resource", "Parameters", "Next"},
        {"HeartbeatSecondsPath", "TimeoutSecondsPath", "ResultSelector", "ResultPath", "Retry", "Catch"},
    ),
    "Choice": ({"Choices"}, {"Default"}),
    "Wait": ({"SecondsPath", "Next"}, set()),
    "Pass": ({"Next"}, {"Result", "ResultPath"}),
    "Succeed": (set(), set()),
    "Fail": (set(), {"Error", "Cause"}),
}
_RETRY = (
    {"ErrorEquals"},
    {"IntervalSeconds", "BackoffRate", "MaxAttempts", "MaxDelaySeconds", "JitterStrategy"},
)
_CATCH = ({"ErrorEquals", "Next"}, {"ResultPath"})
_CHOICE = ({"Variable", "StringEquals", "Next"}, set[str]())


class Unsupported(Exception):
    """The definition has something that this interpreter does not know."""


@dataclass(frozen=True)
class Retrier:
    errors: frozenset[str]
    interval_seconds: float = 1
    backoff_rate: float = 2.0
    max_attempts: int = 3
    max_delay_seconds: float | None = None
    full_jitter: bool = False

    def longest_delay(self, attempt: int) -> float:
        """Seconds before retry number `attempt` (from 0), before jitter."""
        delay = self.interval_seconds * self.backoff_rate**attempt
        return delay if self.max_delay_seconds is None else min(delay, self.max_delay_seconds)


@dataclass(frozen=True)
class Catcher:
    errors: frozenset[str]
    next: str
    result_path: str = "$"


@dataclass(frozen=True)
class State:
    """One state; only the fields of its type mean something."""

    name: str
    kind: str
    next: str = ""
    function: str = ""
    payload: Mapping[str, Any] | None = None
    waits_for_token: bool = False
    heartbeat_path: str | None = None
    timeout_path: str | None = None
    seconds_path: str = ""
    selector: Mapping[str, Any] | None = None
    result: Any = None
    result_path: str = "$"
    retriers: tuple[Retrier, ...] = ()
    catchers: tuple[Catcher, ...] = ()
    choices: tuple[tuple[str, str, str], ...] = ()
    """Variable, the string it must equal, and the next state."""
    default: str = ""
    error: str = ""
    cause: str = ""

    @property
    def ways(self) -> frozenset[tuple[str, str, str]]:
        """Every way out: this state, the next one, and how."""
        found = {(self.name, self.next, "next"), (self.name, self.default, "default")}
        found |= {(self.name, to, f"{variable} is {wanted}") for variable, wanted, to in self.choices}
        found |= {(self.name, each.next, "caught") for each in self.catchers}
        return frozenset(way for way in found if way[1])

    @property
    def successors(self) -> frozenset[str]:
        return frozenset(to for _, to, _ in self.ways)


@dataclass(frozen=True)
class Definition:
    start_at: str
    states: Mapping[str, State]

    @property
    def ways(self) -> frozenset[tuple[str, str, str]]:
        """Every way from a state to a next one."""
        return frozenset(way for state in self.states.values() for way in state.ways)


def load(text: str) -> Definition:
    """Read a definition. Raises `Unsupported`."""
    machine = json.loads(text)
    _check("the machine", machine, ({"StartAt", "States"}, set()))
    states = {name: _state(name, body) for name, body in machine["States"].items()}
    for name, state in states.items():
        if unknown := state.successors - states.keys():
            raise Unsupported(f"{name} leads to {', '.join(sorted(unknown))}, which is nowhere")
    if machine["StartAt"] not in states:
        raise Unsupported(f"StartAt names no state: {machine['StartAt']}")
    return Definition(machine["StartAt"], states)


def _check(what: str, body: Mapping[str, Any], fields: tuple[set[str], set[str]]) -> None:
    required, allowed = fields
    missing, unknown = required - body.keys(), body.keys() - required - allowed - {"Comment", "Type"}
    if missing or unknown:
        raise Unsupported(f"{what}: lacks {sorted(missing)}, has unknown {sorted(unknown)}")


def _state(name: str, body: Mapping[str, Any]) -> State:
    kind = body.get("Type", "")
    if kind not in _FIELDS:
        raise Unsupported(f"{name} is of type {kind or 'nothing'}")
    _check(name, body, _FIELDS[kind])
    if kind == "Task":
        return _task(name, body)
    if kind == "Choice":
        return State(name, kind, choices=_choices(name, body["Choices"]), default=body.get("Default", ""))
    if kind == "Wait":
        return State(name, kind, next=body["Next"], seconds_path=path(body["SecondsPath"]))
    return State(
        name,
        kind,
        next=body.get("Next", ""),
        result=body.get("Result"),
        result_path=_result_path(body) if "Result" in body else KEEP_INPUT,
        error=body.get("Error", ""),
        cause=body.get("Cause", ""),
    )


def _task(name: str, body: Mapping[str, Any]) -> State:
    if body["Resource"] not in {INVOKE, INVOKE_AND_WAIT}:
        raise Unsupported(f"{name} calls {body['Resource']}")
    _check(f"{name}'s parameters", body["Parameters"], ({"FunctionName", "Payload"}, set()))
    placeholder = _PLACEHOLDER.fullmatch(body["Parameters"]["FunctionName"])
    if placeholder is None:
        raise Unsupported(f"{name} calls a function without a placeholder")
    payload = body["Parameters"]["Payload"]
    _check_template(name, payload, token=body["Resource"] == INVOKE_AND_WAIT)
    _check_template(name, body.get("ResultSelector", {}), token=False)
    return State(
        name,
        "Task",
        next=body["Next"],
        function=placeholder[1].removesuffix("Function"),
        payload=payload,
        waits_for_token=body["Resource"] == INVOKE_AND_WAIT,
        heartbeat_path=path(body["HeartbeatSecondsPath"]) if "HeartbeatSecondsPath" in body else None,
        timeout_path=path(body["TimeoutSecondsPath"]) if "TimeoutSecondsPath" in body else None,
        selector=body.get("ResultSelector"),
        result_path=_result_path(body),
        retriers=tuple(_retrier(name, each) for each in body.get("Retry", [])),
        catchers=tuple(_catcher(name, each) for each in body.get("Catch", [])),
    )


def _check_template(name: str, template: Mapping[str, Any], *, token: bool) -> None:
    for key, value in template.items():
        if isinstance(value, dict | list):
            raise Unsupported(f"{name} nests {key}")
        if key.endswith(".$") and not (token and value == TOKEN_PATH):
            path(value)


def path(text: str) -> str:
    """A plain reference path: `$` and fields."""
    if not _PATH.fullmatch(str(text)):
        raise Unsupported(f"the path {text!r}")
    return text


def _result_path(body: Mapping[str, Any]) -> str:
    found = body.get("ResultPath", "$")
    if found is None:
        return KEEP_INPUT
    if path(found).count(".") > 1:
        raise Unsupported(f"the result path {found}")
    return str(found)


def _retrier(name: str, body: Mapping[str, Any]) -> Retrier:
    _check(f"a retry of {name}", body, _RETRY)
    if body.get("JitterStrategy", "NONE") not in {"NONE", "FULL"}:
        raise Unsupported(f"{name} retries with jitter {body['JitterStrategy']}")
    return Retrier(
        errors=frozenset(body["ErrorEquals"]),
        interval_seconds=body.get("IntervalSeconds", 1),
        backoff_rate=body.get("BackoffRate", 2.0),
        max_attempts=body.get("MaxAttempts", 3),
        max_delay_seconds=body.get("MaxDelaySeconds"),
        full_jitter=body.get("JitterStrategy") == "FULL",
    )


def _catcher(name: str, body: Mapping[str, Any]) -> Catcher:
    _check(f"a catch of {name}", body, _CATCH)
    return Catcher(frozenset(body["ErrorEquals"]), body["Next"], _result_path(body))


def _choices(name: str, rules: list[Mapping[str, Any]]) -> tuple[tuple[str, str, str], ...]:
    for rule in rules:
        _check(f"a choice of {name}", rule, _CHOICE)
    return tuple((path(rule["Variable"]), rule["StringEquals"], rule["Next"]) for rule in rules)
