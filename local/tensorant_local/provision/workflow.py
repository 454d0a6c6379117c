"""The state machine, event buses and rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tensorant_local.provision.resources import Properties, Site
from tensorant_local.template import Created

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


def rule(site: Site, logical_id: str, properties: Properties) -> Created:
    """A rule over a pattern. One with a schedule is not understood: moto's would never fire."""
    events = site.client("events")
    name = properties.take("Name", site.name(logical_id))
    bus = properties.take("EventBusName", "default").rsplit("/", 1)[-1]
    arn = events.put_rule(
        Name=name,
        EventBusName=bus,
        EventPattern=json.dumps(properties.take("EventPattern")),
        **properties.given("State", "Description"),
    )["RuleArn"]
    targets = [_target(site, arn, target) for target in properties.each("Targets")]
    events.put_targets(Rule=name, EventBusName=bus, Targets=targets)
    return Created(name, {"Arn": arn})


def _target(site: Site, rule_arn: str, target: Properties) -> dict[str, Any]:
    target.disregard({"RetryPolicy": "moto delivers once", "DeadLetterConfig": "moto delivers once"})
    arn = target.take("Arn")
    if ":lambda:" in arn:
        site.invocations.append((arn.rsplit(":", 1)[-1], "events.amazonaws.com", rule_arn))
    return target.given("Id", "Input", "InputPath", "InputTransformer", "RoleArn") | {"Arn": arn}


MAKERS: dict[str, Maker] = {
    "AWS::StepFunctions::StateMachine": state_machine,
    "AWS::Events::EventBus": event_bus,
    "AWS::Events::Rule": rule,
}
