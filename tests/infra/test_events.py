"""Events in and out: rules, the schedule, the stream of facts, the bus and the alarms."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from infra.deployment import MOST_CUSTOMER_ACCOUNTS
from tests.infra.template import printed

if TYPE_CHECKING:
    from tests.infra.template import Template

QUEUE = "<FailedWorkQueue.Arn>"

STATE_CHANGES = {"source": ["aws.ec2"], "detail-type": ["EC2 Instance State-change Notification"]}
SCHEDULED_CHANGES = {
    "source": ["aws.health"],
    "detail-type": ["AWS Health Event"],
    "detail": {"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]},
}
OWN = {"account": ["<AWS::AccountId>"]}

PATTERNS: dict[str, dict[str, Any]] = {
    "Ec2NewsStateChanges": STATE_CHANGES,
    "Ec2NewsScheduledChanges": SCHEDULED_CHANGES,
    "CustomersNewsStateChanges": {**STATE_CHANGES, **OWN},
    "CustomersNewsScheduledChanges": {**SCHEDULED_CHANGES, **OWN},
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

CUSTOMERS = "<CustomersBus>"
TARGETS = {  # bus, function, retries
    "Ec2NewsStateChanges": ("default", "<FunctionsEc2Events.Arn>", 20),
    "Ec2NewsScheduledChanges": ("default", "<FunctionsEc2Events.Arn>", 20),
    "CustomersNewsStateChanges": (CUSTOMERS, "<FunctionsEc2Events.Arn>", 20),
    "CustomersNewsScheduledChanges": (CUSTOMERS, "<FunctionsEc2Events.Arn>", 20),
    "BadEndsRule": ("default", "<FunctionsExecutionEnded.Arn>", 20),
    "SweepScheduleRule": ("default", "<FunctionsSweep.Arn>", 0),
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
    bus = printed(rule.get("EventBusName", "default"))

    assert (bus, printed(target["Arn"]), target["RetryPolicy"]["MaximumRetryAttempts"]) == TARGETS[name]
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


def test_the_deployments_own_events_and_its_customers_have_a_bus_each(template: Template) -> None:
    buses = template.resources("AWS::Events::EventBus")

    assert {name: bus["Name"] for name, bus in buses.items()} == {
        "EventsBus": "tensorant-events",
        "CustomersBus": "tensorant-customers",
    }


def test_without_customers_nobody_else_may_put_events_on_any_bus(template: Template) -> None:
    kinds = {resource["Type"] for resource in template.content["Resources"].values()}

    assert "AWS::Events::EventBusPolicy" not in kinds


def test_the_listed_accounts_may_put_events_of_ec2_and_health_on_the_customers_bus(
    bare_template: Template,
) -> None:
    policy = bare_template.only("AWS::Events::EventBusPolicy")
    statement = policy["Statement"]

    assert printed(policy["EventBusName"]) == CUSTOMERS
    assert policy["StatementId"] == "CustomersEc2Events"
    assert {key: value for key, value in statement.items() if key not in {"Principal", "Resource"}} == {
        "Sid": "CustomersEc2Events",
        "Effect": "Allow",
        "Action": "events:PutEvents",
        "Condition": {"ForAllValues:StringEquals": {"events:source": ["aws.ec2", "aws.health"]}},
    }
    assert printed(statement["Resource"]) == "<CustomersBus.Arn>"
    assert [printed(each) for each in statement["Principal"]["AWS"]] == [
        "arn:<AWS::Partition>:iam::111122223333:root",
        "arn:<AWS::Partition>:iam::444455556666:root",
    ]


@pytest.mark.parametrize("name", ["CustomersNewsStateChanges", "CustomersNewsScheduledChanges"])
def test_events_of_the_listed_accounts_and_of_the_own_one_are_heard(
    bare_template: Template, name: str
) -> None:
    pattern = bare_template.resources("AWS::Events::Rule")[name]["EventPattern"]

    assert [printed(each) for each in pattern["account"]] == [
        "<AWS::AccountId>",
        "111122223333",
        "444455556666",
    ]


def test_the_most_customers_fit_into_a_rule_and_a_policy() -> None:
    """EventBridge takes 2,048 characters of a pattern and 10,240 bytes of a policy."""
    accounts = [f"{number:012d}" for number in range(MOST_CUSTOMER_ACCOUNTS)]
    pattern = {**SCHEDULED_CHANGES, "account": ["123456789012", *accounts]}
    policy = {"Principal": {"AWS": [f"arn:aws:iam::{account}:root" for account in accounts]}}

    assert len(json.dumps(pattern)) < 2048
    assert len(json.dumps(policy)) + 1000 < 10_240


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
    if accounts := pattern.get("account"):
        pattern["account"] = [printed(each) for each in accounts]
    return pattern
