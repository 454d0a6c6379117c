"""The judge of policies, held against what IAM's documentation says of single rules."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.policy_evaluator import Account, Authorization, allows, denied

ARN = "arn:aws:ec2:eu-west-1:111122223333:instance/i-1"
HERE = Account("111122223333", "eu-west-1", tags_of={"i-1": {"Team": "blue"}}.__getitem__)


def statement(**changes: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "ec2:StopInstances", "Resource": "*", **changes}


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def stop(team: str | None = None) -> Authorization:
    return Authorization("ec2:StopInstances", ARN, {} if team is None else {"ec2:resourcetag/team": team})


def test_what_nothing_allows_is_denied() -> None:
    assert not allows(policy(statement(Action="ec2:StartInstances")), stop())


def test_an_explicit_deny_wins() -> None:
    assert not allows(policy(statement(), statement(Effect="Deny")), stop())


@pytest.mark.parametrize(
    ("action", "resource", "allowed"),
    [
        ("ec2:Stop*", "*", True),
        ("EC2:stopinstances", "*", True),
        ("ec2:*", "arn:aws:ec2:*:111122223333:instance/*", True),
        ("ec2:*", "arn:aws:ec2:eu-west-1:111122223333:instance/i-?", True),
        ("ec2:*", "arn:aws:ec2:eu-west-1:111122223333:instance/i-${?}", False),
        ("ec2:*", "arn:aws:ec2:eu-west-1:111122223333:INSTANCE/*", False),
        (["ec2:StartInstances", "ec2:StopInstances"], ["arn:aws:ec2:*", "arn:aws:s3:*"], True),
    ],
)
def test_actions_and_resources_match_by_wildcards(action: Any, resource: Any, *, allowed: bool) -> None:
    assert allows(policy(statement(Action=action, Resource=resource)), stop()) is allowed


@pytest.mark.parametrize(
    ("operator", "values", "tag", "allowed"),
    [
        ("StringEquals", "blue", "blue", True),
        ("StringEquals", ["red", "blue"], "blue", True),
        ("StringEquals", "blue", "Blue", False),
        ("StringEquals", "blue", None, False),
        ("StringEquals", "bl*", "blue", False),
        ("StringEqualsIfExists", "blue", None, True),
        ("StringEqualsIfExists", "blue", "red", False),
        ("StringLike", "bl*", "blue", True),
        ("ArnLike", "arn:aws:iam::*:role/x", "arn:aws:iam::1:role/x", True),
        ("Bool", "true", "True", True),
        ("Null", "true", None, True),
        ("Null", "true", "blue", False),
        ("Null", "false", "blue", True),
    ],
)
def test_a_condition_holds_or_not(operator: str, values: Any, tag: str | None, *, allowed: bool) -> None:
    judged = policy(statement(Condition={operator: {"ec2:ResourceTag/Team": values}}))

    assert allows(judged, stop(tag)) is allowed


def test_all_conditions_must_hold() -> None:
    both = {"StringEquals": {"ec2:ResourceTag/Team": "blue"}, "Null": {"ec2:CreateAction": "false"}}

    assert not allows(policy(statement(Condition=both)), stop("blue"))


@pytest.mark.parametrize(
    "changes",
    [
        {"NotAction": "ec2:*"},
        {"Resource": "arn:aws:ec2:*:*:instance/${aws:username}"},
        {"Condition": {"DateLessThan": {"aws:CurrentTime": "2030-01-01T00:00:00Z"}}},
    ],
)
def test_what_it_does_not_know_it_refuses_to_judge(changes: dict[str, Any]) -> None:
    with pytest.raises(NotImplementedError):
        allows(policy(statement(**changes)), stop())


def test_a_launch_is_authorized_on_every_resource_it_uses_and_makes() -> None:
    request = {
        "ImageId": "ami-1",
        "KeyName": "k",
        "NetworkInterfaces": [{"SubnetId": "subnet-1", "Groups": ["sg-1"]}],
        "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "A", "Value": "b"}]}],
        "IamInstanceProfile": {"Arn": "arn:aws:iam::111122223333:instance-profile/p"},
    }
    here = "arn:aws:ec2:eu-west-1:111122223333"

    wanted = HERE.wants("ec2", "RunInstances", request)

    assert [(each.action, each.resource, each.context) for each in wanted] == [
        ("ec2:RunInstances", "arn:aws:ec2:eu-west-1::image/ami-1", {}),
        ("ec2:RunInstances", f"{here}:key-pair/k", {}),
        ("ec2:RunInstances", f"{here}:subnet/subnet-1", {}),
        ("ec2:RunInstances", f"{here}:security-group/sg-1", {}),
        ("ec2:RunInstances", f"{here}:network-interface/*", {}),
        ("ec2:RunInstances", f"{here}:instance/*", {"aws:requesttag/a": "b"}),
        ("ec2:RunInstances", f"{here}:volume/*", {}),
        (
            "ec2:CreateTags",
            f"{here}:instance/*",
            {"ec2:createaction": "RunInstances", "aws:requesttag/a": "b"},
        ),
        (
            "iam:PassRole",
            "arn:aws:iam::111122223333:role/p",
            {"iam:passedtoservice": "ec2.amazonaws.com"},
        ),
    ]


def test_a_stop_is_judged_by_the_instances_tags() -> None:
    asked = HERE.wants("ec2", "StopInstances", {"InstanceIds": ["i-1"]})
    blue = policy(statement(Condition={"StringEquals": {"ec2:ResourceTag/Team": "blue"}}))
    red = policy(statement(Condition={"StringEquals": {"ec2:ResourceTag/Team": "red"}}))

    assert denied(blue, asked) is None
    assert denied(red, asked) == asked[0]


def test_who_one_is_may_always_be_asked() -> None:
    assert HERE.wants("sts", "GetCallerIdentity", {}) == []


def test_a_call_that_the_table_lacks_is_not_let_through() -> None:
    with pytest.raises(NotImplementedError):
        HERE.wants("ec2", "ModifyInstanceAttribute", {})
