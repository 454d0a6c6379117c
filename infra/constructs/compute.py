"""What functions may do to reach machines: assume customers' roles, and perhaps use EC2 in their own account."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Aws

from infra.constructs.rights import Right

ROLE_NAMES = "tensorant-*"
"""How the names of roles begin that Tensorant may assume, or hand to an instance."""

MANAGED = "true"
REQUESTED = {"StringEquals": {"aws:RequestTag/tensorant:managed": MANAGED}}
TAGGED_AT_LAUNCH = {
    "StringEquals": {"ec2:CreateAction": "RunInstances", "aws:RequestTag/tensorant:managed": MANAGED}
}
TAGGED = {"StringEquals": {"ec2:ResourceTag/tensorant:managed": MANAGED}}
TO_EC2 = {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}

READS = (
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeKeyPairs",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "iam:GetInstanceProfile",
    "pricing:GetProducts",
    "servicequotas:GetAWSDefaultServiceQuota",
    "servicequotas:GetServiceQuota",
)
INPUTS = ("subnet", "security-group", "key-pair", "network-interface")
MADE = ("instance", "volume")


def may_assume_roles_of_customers() -> Right:
    """Each role's own trust policy decides, by the external id of its connection."""
    return Right(
        ("sts:AssumeRole",),
        f"arn:{Aws.PARTITION}:iam::*:role/{ROLE_NAMES}",
        "Customers make their roles when they connect; the names begin alike.",
    )


@dataclass(frozen=True)
class OwnAccountCompute:
    """The rights of the guide's policy in the deployment's own account, in every Region.

    Connections that the platform manages name images and networks at run time, so only tags bound them.
    """

    def may_read(self) -> list[Right]:
        return [Right(READS, "*", "These actions know no resources, or ones that are named at run time.")]

    def may_launch(self) -> list[Right]:
        """Everything that is made carries the tag by which alone it can be stopped and terminated."""
        run, at_run_time = ("ec2:RunInstances",), "Connections name these at run time."
        new = "What is made has no name before; the condition wants Tensorant's tag on it."
        image = Right(run, f"arn:{Aws.PARTITION}:ec2:*::image/*", at_run_time)
        pass_role = Right(
            ("iam:PassRole",),
            f"arn:{Aws.PARTITION}:iam::{Aws.ACCOUNT_ID}:role/{ROLE_NAMES}",
            "Connections name instance profiles at run time; the names of their roles begin alike.",
            TO_EC2,
        )
        return [
            image,
            *(Right(run, _every(kind), at_run_time) for kind in INPUTS),
            *(Right(run, _every(kind), new, REQUESTED) for kind in MADE),
            *(Right(("ec2:CreateTags",), _every(kind), new, TAGGED_AT_LAUNCH) for kind in MADE),
            pass_role,
        ]

    def may_release(self) -> list[Right]:
        actions = ("ec2:StopInstances", "ec2:TerminateInstances")
        return [
            Right(
                actions,
                _every("instance"),
                "Instances are named when they are made; the tag bounds it.",
                TAGGED,
            )
        ]


def _every(kind: str) -> str:
    return f"arn:{Aws.PARTITION}:ec2:*:{Aws.ACCOUNT_ID}:{kind}/*"
