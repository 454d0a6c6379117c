"""The state machine, event buses, rules and schedules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tensorant_local.aws.event_buses import UnknownPolicy, require_known
from tensorant_local.aws.schedules import UnknownSchedule, period
from tensorant_local.provision.resources import Properties, Site
from tensorant_local.template import Created, NotUnderstood

if TYPE_CHECKING:
    from tensorant_local.provision.resources import Maker


def state_machine(site: Site, logical_id: str, properties: Properties) -> Created:
    """From its definition, placeholders filled in."""
    properties.disregard(
        {
            "LoggingConfiguration": "the history of an execution tells the same",
            "TracingConfiguration": "there is no X-Ray",
        }
    )
    definition = properties.take("DefinitionString")
    for name, value in properties.take("DefinitionSubstitutions", {}).items():
        definition = definition.replace(f"${{{name}}}", str(value))
    name = properties.take("StateMachineName", site.name(logical_id, limit=80))
    made = site.client("stepfunctions").create_state_machine(
        name=name,
        definition=definition,
        roleArn=properties.take("RoleArn"),
        type=properties.expect("StateMachineType", "STANDARD") or "STANDARD",
    )
    return Created(made["stateMachineArn"], {"Arn": made["stateMachineArn"], "Name": name})


def event_bus(site: Site, _logical_id: str, properties: Properties) -> Created:
    name = properties.take("Name")
    made = site.client("events").create_event_bus(Name=name)
    return Created(name, {"Arn": made["EventBusArn"], "Name": name})


def event_bus_policy(site: Site, logical_id: str, properties: Properties) -> Created:
    """One statement of a bus's policy: which other accounts may put which events there."""
    sid = properties.take("StatementId")
    statement = {**properties.take("Statement"), "Sid": sid}
    try:
        require_known(statement)
    except UnknownPolicy as error:
        raise NotUnderstood(f"{logical_id}: {error}") from error
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    bus = properties.take("EventBusName", "default")
    site.client("events").put_permission(EventBusName=bus, Policy=json.dumps(policy))
    return Created(sid, {})


def rule(site: Site, logical_id: str, properties: Properties) -> Created:
    """A rule over a pattern, or with a schedule that is a rate."""
    occasion = _occasion(logical_id, properties)
    events = site.client("events")
    name = properties.take("Name", site.name(logical_id))
    bus = properties.take("EventBusName", "default").rsplit("/", 1)[-1]
    arn = events.put_rule(
        Name=name,
        EventBusName=bus,
        **occasion,
        **properties.given("State", "Description"),
    )["RuleArn"]
    targets = [_target(site, arn, target) for target in properties.each("Targets")]
    events.put_targets(Rule=name, EventBusName=bus, Targets=targets)
    return Created(name, {"Arn": arn})


def _occasion(logical_id: str, properties: Properties) -> dict[str, str]:
    """When the rule fires, as PutRule takes it."""
    pattern, schedule = properties.take("EventPattern", None), properties.take("ScheduleExpression", None)
    if schedule is not None:
        try:
            period(schedule)
        except UnknownSchedule as error:
            raise NotUnderstood(f"{logical_id}: schedule {schedule}") from error
    if pattern is None and schedule is None:
        raise NotUnderstood(f"{logical_id}: a rule without EventPattern or ScheduleExpression")
    given = {
        "EventPattern": json.dumps(pattern) if pattern is not None else None,
        "ScheduleExpression": schedule,
    }
    return {name: value for name, value in given.items() if value is not None}


def _target(site: Site, rule_arn: str, target: Properties) -> dict[str, Any]:
    target.disregard(
        {
            "RetryPolicy": "handing over cannot fail here; the function's own failures are tried again",
            "DeadLetterConfig": "handing over cannot fail here",
        }
    )
    arn = target.take("Arn")
    if ":lambda:" in arn:
        site.invocations.append((arn.rsplit(":", 1)[-1], "events.amazonaws.com", rule_arn))
    return target.given("Id", "Input", "InputPath", "InputTransformer", "RoleArn") | {"Arn": arn}


MAKERS: dict[str, Maker] = {
    "AWS::StepFunctions::StateMachine": state_machine,
    "AWS::Events::EventBus": event_bus,
    "AWS::Events::EventBusPolicy": event_bus_policy,
    "AWS::Events::Rule": rule,
}
