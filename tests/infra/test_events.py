"""Events in and out: rules, the schedule, the stream of facts, the bus and the alarms."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.infra.template import printed

if TYPE_CHECKING:
    from tests.infra.template import Template

QUEUE = "<FailedWorkQueue.Arn>"

PATTERNS: dict[str, dict[str, Any]] = {
    "Ec2StateChangesRule": {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Instance State-change Notification"],
    },
    "BadEndsRule": {
        "source": ["aws.states"],
        "detail-type": ["Step Functions Execution Status Change"],
        "detail": {
            "stateMachineArn": ["<WorkflowTrainingRun>"],
            "status": ["FAILED", "ABORTED", "TIMED_OUT"],
        },
    },
}
SCHEDULES = {"SweepScheduleRule": "rate(5 minutes)"}

TARGETS = {  # function, retries
    "Ec2StateChangesRule": ("<FunctionsEc2Events.Arn>", 20),
    "BadEndsRule": ("<FunctionsExecutionEnded.Arn>", 20),
    "SweepScheduleRule": ("<FunctionsSweep.Arn>", 0),
}


def test_there_are_these_rules_and_no_others(template: Template) -> None:
    rules = template.resources("AWS::Events::Rule")

    assert {name: _pattern(rule) for name, rule in rules.items() if "EventPattern" in rule} == PATTERNS
    assert {
        name: rule["ScheduleExpression"] for name, rule in rules.items() if "ScheduleExpression" in rule
    } == SCHEDULES


@pytest.mark.parametrize("name", TARGETS)
def test_a_rule_listens_where_aws_speaks_and_loses_nothing(template: Template, name: str) -> None:
    rule = template.resources("AWS::Events::Rule")[name]
    (target,) = rule["Targets"]

    assert "EventBusName" not in rule  # AWS sends these to the default bus only
    assert (printed(target["Arn"]), target["RetryPolicy"]["MaximumRetryAttempts"]) == TARGETS[name]
    assert target["RetryPolicy"]["MaximumEventAgeInSeconds"] == 3600
    assert printed(target["DeadLetterConfig"]["Arn"]) == QUEUE


def test_rules_may_send_to_the_queue_of_failed_work(template: Template) -> None:
    statements = template.only("AWS::SQS::QueuePolicy")["PolicyDocument"]["Statement"]
    allowed = {
        printed(statement["Condition"]["ArnEquals"]["aws:SourceArn"])
        for statement in statements
        if statement["Effect"] == "Allow"
        and statement["Action"] == "sqs:SendMessage"
        and statement["Principal"] == {"Service": "events.amazonaws.com"}
    }

    assert allowed == {f"<{name}.Arn>" for name in TARGETS}


def test_new_facts_are_read_from_the_tables_stream(template: Template) -> None:
    mapping = template.only("AWS::Lambda::EventSourceMapping")

    assert printed(mapping["EventSourceArn"]) == "<Table.StreamArn>"
    assert printed(mapping["FunctionName"]) == "<FunctionsPublishFacts>"
    (chosen,) = mapping["FilterCriteria"]["Filters"]
    assert json.loads(chosen["Pattern"]) == {
        "eventName": ["INSERT"],
        "dynamodb": {"NewImage": {"kind": {"S": ["Fact"]}}},
    }


def test_a_fact_that_cannot_be_told_holds_up_the_others_for_a_while_only(template: Template) -> None:
    mapping = template.only("AWS::Lambda::EventSourceMapping")

    assert (mapping["StartingPosition"], mapping["BatchSize"]) == ("TRIM_HORIZON", 100)
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["MaximumRetryAttempts"] == 10
    assert printed(mapping["DestinationConfig"]["OnFailure"]["Destination"]) == QUEUE


def test_the_deployment_has_a_bus_of_its_own(template: Template) -> None:
    assert template.only("AWS::Events::EventBus")["Name"] == "tensorant-events"


@pytest.mark.parametrize(
    ("name", "metric", "of", "statistic"),
    [
        (
            "tensorant-executions-failed",
            "AWS/States ExecutionsFailed",
            "StateMachineArn=<WorkflowTrainingRun>",
            "Sum",
        ),
        (
            "tensorant-failed-work",
            "AWS/SQS ApproximateNumberOfMessagesVisible",
            "QueueName=<FailedWorkQueue.QueueName>",
            "Maximum",
        ),
    ],
)
def test_one_failure_in_five_minutes_is_an_alarm(
    template: Template, name: str, metric: str, of: str, statistic: str
) -> None:
    alarms = {alarm["AlarmName"]: alarm for alarm in template.resources("AWS::CloudWatch::Alarm").values()}
    alarm = alarms[name]
    (dimension,) = alarm["Dimensions"]

    assert len(alarms) == 2
    assert f"{alarm['Namespace']} {alarm['MetricName']}" == metric
    assert f"{dimension['Name']}={printed(dimension['Value'])}" == of
    assert (alarm["Statistic"], alarm["Period"], alarm["EvaluationPeriods"]) == (statistic, 300, 1)
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanOrEqualToThreshold", 1)
    assert alarm["TreatMissingData"] == "notBreaching"
    assert "AlarmActions" not in alarm  # an administrator adds them


def _pattern(rule: dict[str, Any]) -> dict[str, Any]:
    """A rule's pattern with its references printed."""
    pattern: dict[str, Any] = json.loads(json.dumps(rule["EventPattern"]))
    if machines := pattern.get("detail", {}).get("stateMachineArn"):
        pattern["detail"]["stateMachineArn"] = [printed(each) for each in machines]
    return pattern
