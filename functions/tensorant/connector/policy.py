"""The policy of a connection's identity: the guide's, with the connection's values in place.

Source: the guide's policy (actions, resources and conditions are its own). Optional statements go beyond it.
"""

from __future__ import annotations

from typing import Any

from tensorant.domain.connections import AwsSettings

VERSION = "2012-10-17"

MANAGED = {"aws:RequestTag/tensorant:managed": "true"}

DISCOVERY = [
    "ec2:DescribeImages",
    "ec2:DescribeSubnets",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "pricing:GetProducts",
]

Document = dict[str, Any]


def policy(
    settings: AwsSettings,
    account_id: str,
    *,
    quota: bool = False,
    checks: bool = False,
    profile_role_arn: str | None = None,
) -> Document:
    """The least that the connection needs.

    `quota` adds reading the account's vCPU quotas, `checks` adds looking at the key pair and the instance
    profile before a launch needs them. `profile_role_arn` is the role inside the instance profile; without
    it, `assumed_role_arn` stands in.
    """
    place = f"arn:aws:ec2:{settings.region}:{account_id}"
    made = [f"{place}:instance/*", f"{place}:volume/*"]
    statements = [
        _allow("DiscoverAndPrice", DISCOVERY, "*"),
        _allow("ApprovedLaunchInputs", "ec2:RunInstances", _inputs(settings, place)),
        _allow("CreateTaggedComputeAndDisks", "ec2:RunInstances", made, MANAGED),
        _allow("TagsAtLaunchOnly", "ec2:CreateTags", made, {"ec2:CreateAction": "RunInstances", **MANAGED}),
        _allow(
            "ManageTaggedTrainingInstances",
            ["ec2:StartInstances", "ec2:StopInstances", "ec2:TerminateInstances"],
            f"{place}:instance/*",
            {"ec2:ResourceTag/tensorant:managed": "true"},
        ),
    ]
    if settings.instance_profile_arn:
        role = profile_role_arn or assumed_role_arn(settings.instance_profile_arn)
        statements.append(_pass_role(role))
    if quota:
        reading = ["servicequotas:GetServiceQuota", "servicequotas:GetAWSDefaultServiceQuota"]
        statements.append(_allow("ReadQuotas", reading, "*"))
    if checks:
        statements += _looking(settings)
    return {"Version": VERSION, "Statement": statements}


def assumed_role_arn(instance_profile_arn: str) -> str:
    """The role of an instance profile that the EC2 console made: it has the profile's name and path."""
    return instance_profile_arn.replace(":instance-profile/", ":role/", 1)


def _inputs(settings: AwsSettings, place: str) -> list[str]:
    """An image's ARN has no account (Service Authorization Reference, EC2); the interface is new each time."""
    key = [f"{place}:key-pair/{_literal(settings.key_name)}"] if settings.key_name else []
    return [
        f"arn:aws:ec2:{settings.region}::image/{settings.image_id}",
        *(f"{place}:subnet/{each}" for each in settings.subnet_ids),
        f"{place}:security-group/{settings.security_group_id}",
        *key,
        f"{place}:network-interface/*",
    ]


def _pass_role(role_arn: str) -> Document:
    """As the guide has it, without a Sid."""
    return {
        "Effect": "Allow",
        "Action": "iam:PassRole",
        "Resource": _literal(role_arn),
        "Condition": {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
    }


def _looking(settings: AwsSettings) -> list[Document]:
    found = []
    if settings.key_name:
        found.append(_allow("ReadKeyPair", "ec2:DescribeKeyPairs", "*"))
    if settings.instance_profile_arn:
        profile = _literal(settings.instance_profile_arn)
        found.append(_allow("ReadInstanceProfile", "iam:GetInstanceProfile", profile))
    return found


def _allow(
    sid: str, action: str | list[str], resource: str | list[str], equal: dict[str, str] | None = None
) -> Document:
    statement: Document = {"Sid": sid, "Effect": "Allow", "Action": action, "Resource": resource}
    if equal:
        statement["Condition"] = {"StringEquals": equal}
    return statement


def _literal(name: str) -> str:
    """A person's text in an ARN: a wildcard in it stands for itself (IAM, policy variables, special characters)."""
    return "".join(f"${{{each}}}" if each in "*?$" else each for each in name)
