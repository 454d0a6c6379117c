"""What a deployment may do with EC2 in its own account: nothing, unless an administrator chose so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from cdk_nag import AwsSolutionsChecks

from infra.constructs.compute import OwnAccountCompute, may_assume_roles_of_customers
from infra.constructs.rights import give
from tests.infra.template import printed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.infra.template import Template

OWN = "arn:<AWS::Partition>:ec2:*:<AWS::AccountId>"
TAG = "tensorant:managed"

READ = {
    ("ec2:DescribeImages", "*"),
    ("ec2:DescribeInstanceTypeOfferings", "*"),
    ("ec2:DescribeInstanceTypes", "*"),
    ("ec2:DescribeInstances", "*"),
    ("ec2:DescribeKeyPairs", "*"),
    ("ec2:DescribeSecurityGroups", "*"),
    ("ec2:DescribeSubnets", "*"),
    ("iam:GetInstanceProfile", "*"),
    ("pricing:GetProducts", "*"),
    ("servicequotas:GetAWSDefaultServiceQuota", "*"),
    ("servicequotas:GetServiceQuota", "*"),
}
RELEASE = {("ec2:StopInstances", f"{OWN}:instance/*"), ("ec2:TerminateInstances", f"{OWN}:instance/*")}
LAUNCH = {
    ("ec2:RunInstances", "arn:<AWS::Partition>:ec2:*::image/*"),
    ("ec2:RunInstances", f"{OWN}:subnet/*"),
    ("ec2:RunInstances", f"{OWN}:security-group/*"),
    ("ec2:RunInstances", f"{OWN}:key-pair/*"),
    ("ec2:RunInstances", f"{OWN}:network-interface/*"),
    ("ec2:RunInstances", f"{OWN}:instance/*"),
    ("ec2:RunInstances", f"{OWN}:volume/*"),
    ("ec2:CreateTags", f"{OWN}:instance/*"),
    ("ec2:CreateTags", f"{OWN}:volume/*"),
    ("iam:PassRole", "arn:<AWS::Partition>:iam::<AWS::AccountId>:role/tensorant-*"),
}
SERVICES = ("ec2:", "pricing:", "servicequotas:", "iam:")

RIGHTS: dict[str, set[tuple[str, str]]] = {
    "connection_check": READ,
    "provider": READ,
    "validate_run": READ,
    "observe_machine": READ,
    "launch_machine": READ | LAUNCH | RELEASE,
    "converge_machine": READ | RELEASE,
    "ec2_events": READ | RELEASE,
    "execution_ended": READ | RELEASE,
    "sweep": READ | RELEASE,
}


def of_compute(template: Template, module: str) -> set[tuple[str, str]]:
    rights = template.rights(template.functions()[module]["Role"])
    return {right for right in rights if right[0].startswith(SERVICES)}


def test_without_the_choice_no_function_may_do_anything_with_ec2(template: Template) -> None:
    assert {module: of_compute(template, module) for module in template.functions()} == {
        module: set() for module in template.functions()
    }


def test_with_it_a_function_may_do_what_it_is_for(bare_template: Template) -> None:
    found = {module: of_compute(bare_template, module) for module in bare_template.functions()}

    assert found == {module: RIGHTS.get(module, set()) for module in bare_template.functions()}


def conditions(template: Template) -> dict[tuple[str, str], Any]:
    """Of the statements of the function that launches, by action and resource."""
    [policy] = [
        each["PolicyDocument"]["Statement"]
        for name, each in template.resources("AWS::IAM::Policy").items()
        if "LaunchMachine" in name
    ]
    return {
        (action, printed(resource)): statement.get("Condition")
        for statement in policy
        for action in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
    }


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize(
    ("action", "resource", "condition"),
    [
        ("ec2:RunInstances", "instance", {f"aws:RequestTag/{TAG}": "true"}),
        ("ec2:RunInstances", "volume", {f"aws:RequestTag/{TAG}": "true"}),
        (
            "ec2:CreateTags",
            "instance",
            {"ec2:CreateAction": "RunInstances", f"aws:RequestTag/{TAG}": "true"},
        ),
        ("ec2:CreateTags", "volume", {"ec2:CreateAction": "RunInstances", f"aws:RequestTag/{TAG}": "true"}),
        ("ec2:StopInstances", "instance", {f"ec2:ResourceTag/{TAG}": "true"}),
        ("ec2:TerminateInstances", "instance", {f"ec2:ResourceTag/{TAG}": "true"}),
    ],
)
def test_only_what_carries_the_tag_is_made_and_released(
    bare_template: Template, action: str, resource: str, condition: dict[str, str]
) -> None:
    assert conditions(bare_template)[action, f"{OWN}:{resource}/*"] == {"StringEquals": condition}


def test_a_role_is_passed_to_ec2_alone(bare_template: Template) -> None:
    [condition] = [
        found for (action, _), found in conditions(bare_template).items() if action == "iam:PassRole"
    ]

    assert condition == {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}


def test_cdk_nag_accepts_these_rights_for_the_reasons_that_they_give(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path), analytics_reporting=False)
    role = iam.Role(cdk.Stack(app, "Rights"), "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    own = OwnAccountCompute()
    rights = [may_assume_roles_of_customers(), *own.may_read(), *own.may_launch(), *own.may_release()]
    give(role, role.add_to_policy, *rights)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))

    app.synth()  # raises RuntimeError with the findings
