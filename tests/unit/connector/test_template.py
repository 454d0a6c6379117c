"""The connector: what a customer's account forwards, and whom it lets in."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tensorant.connector.template import CustomerBus, template
from tensorant.domain.connections import AwsSettings, CredentialKind
from tests.support.worlds import ACCOUNT, AWS_SETTINGS

DEPLOYMENT = "999988887777"
BUS = CustomerBus(f"arn:aws:events:us-east-1:{DEPLOYMENT}:event-bus/tensorant-customers")
KEYS = replace(AWS_SETTINGS, region="eu-west-1")
ROLE = replace(
    KEYS,
    credentials=CredentialKind.ROLE,
    role_arn=f"arn:aws:iam::{ACCOUNT}:role/tensorant-training",
    external_id="external-1",
)
OURS = replace(KEYS, credentials=CredentialKind.SAME_ACCOUNT)
DOCUMENT = {"Version": "2012-10-17", "Statement": [{"Sid": "of the connection"}]}


def connector(settings: AwsSettings = KEYS, account_id: str = ACCOUNT) -> dict[str, Any]:
    return template(settings, account_id, DOCUMENT, bus=BUS)


def properties(made: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = made["Resources"][name]["Properties"]
    return found


def kinds(made: dict[str, Any]) -> dict[str, str]:
    return {name: resource["Type"] for name, resource in made["Resources"].items()}


def test_state_changes_and_notices_go_to_the_deployments_bus() -> None:
    made = connector()

    for rule, source in (("StateChanges", "aws.ec2"), ("HealthNotices", "aws.health")):
        found = properties(made, rule)
        assert found["EventPattern"]["source"] == [source]
        assert "EventBusName" not in found  # the default bus: AWS puts these events nowhere else
        [target] = found["Targets"]
        assert target["Arn"] == BUS.arn
        assert target["RoleArn"] == {"Fn::GetAtt": ["ForwardingRole", "Arn"]}


def test_only_what_tensorant_hears_is_forwarded() -> None:
    made = connector()

    assert properties(made, "StateChanges")["EventPattern"]["detail-type"] == [
        "EC2 Instance State-change Notification"
    ]
    assert properties(made, "HealthNotices")["EventPattern"]["detail"] == {
        "service": ["EC2"],
        "eventTypeCategory": ["scheduledChange"],
    }


def test_eventbridge_may_put_events_on_that_bus_and_nothing_else() -> None:
    role = properties(connector(), "ForwardingRole")

    assert role["AssumeRolePolicyDocument"]["Statement"] == [
        {
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"aws:SourceAccount": ACCOUNT}},
        }
    ]
    [policy] = role["Policies"]
    assert policy["PolicyDocument"]["Statement"] == [
        {"Effect": "Allow", "Action": "events:PutEvents", "Resource": BUS.arn}
    ]


def test_for_keys_there_is_a_user_with_the_policy_and_no_key_yet() -> None:
    made = connector()

    assert kinds(made) == {
        "ForwardingRole": "AWS::IAM::Role",
        "StateChanges": "AWS::Events::Rule",
        "HealthNotices": "AWS::Events::Rule",
        "Identity": "AWS::IAM::User",
        "IdentityPolicy": "AWS::IAM::ManagedPolicy",
    }
    assert properties(made, "IdentityPolicy")["PolicyDocument"] == DOCUMENT
    assert properties(made, "IdentityPolicy")["Users"] == [{"Ref": "Identity"}]
    assert made["Outputs"]["UserName"]["Value"] == {"Ref": "Identity"}


def test_a_role_lets_the_deployment_in_with_the_connections_external_id_only() -> None:
    made = connector(ROLE)

    role = properties(made, "Identity")
    assert role["RoleName"] == "tensorant-training"
    assert role["AssumeRolePolicyDocument"]["Statement"] == [
        {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{DEPLOYMENT}:root"},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"sts:ExternalId": "external-1"}},
        }
    ]
    assert properties(made, "IdentityPolicy")["Roles"] == [{"Ref": "Identity"}]
    assert made["Outputs"]["RoleArn"]["Value"] == {"Fn::GetAtt": ["Identity", "Arn"]}


def test_it_is_refused_anywhere_but_in_the_connections_account_and_region() -> None:
    asserted = [rule["Assertions"][0]["Assert"]["Fn::Equals"] for rule in connector()["Rules"].values()]

    assert asserted == [[{"Ref": "AWS::Region"}, "eu-west-1"], [{"Ref": "AWS::AccountId"}, ACCOUNT]]


def test_it_asks_for_nothing_and_tells_no_secret() -> None:
    made = connector(ROLE)

    assert "Parameters" not in made
    assert "external-1" not in json.dumps(made["Outputs"])


def test_the_deployments_own_region_forwards_nothing_to_itself() -> None:
    at_home = replace(KEYS, region="us-east-1")

    assert kinds(connector(at_home, DEPLOYMENT)) == {
        "Identity": "AWS::IAM::User",
        "IdentityPolicy": "AWS::IAM::ManagedPolicy",
    }


def test_the_deployments_own_account_in_another_region_forwards_and_needs_no_identity() -> None:
    assert kinds(connector(OURS, DEPLOYMENT)) == {
        "ForwardingRole": "AWS::IAM::Role",
        "StateChanges": "AWS::Events::Rule",
        "HealthNotices": "AWS::Events::Rule",
    }


def test_the_deployments_own_account_and_region_has_nothing_to_deploy() -> None:
    assert connector(replace(OURS, region="us-east-1"), DEPLOYMENT)["Resources"] == {}
