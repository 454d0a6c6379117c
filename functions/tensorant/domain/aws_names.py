"""How AWS names what a connection needs: each name is looked at before anything is stored.

Each rule returns the name as it is kept, or raises `Invalid` with what is wrong and the mend. Whoever asks
knows the field. No rule repeats what may be a secret.
"""

from __future__ import annotations

import re

from tensorant.domain.connections import ROLE_NAME_PREFIX
from tensorant.domain.errors import Invalid

COMMERCIAL_REGIONS = frozenset(
    {
        "af-south-1",
        *("ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3"),
        *("ap-south-1", "ap-south-2", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3"),
        *("ap-southeast-4", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7"),
        *("ca-central-1", "ca-west-1"),
        *("eu-central-1", "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2"),
        *("eu-west-1", "eu-west-2", "eu-west-3"),
        *("il-central-1", "me-central-1", "me-south-1", "mx-central-1", "sa-east-1"),
        *("us-east-1", "us-east-2", "us-west-1", "us-west-2"),
    }
)
"""Where the partition `aws` has EC2. Source: botocore 1.44's endpoints; a test compares the two."""

OTHER_PARTITIONS = (
    ("cn-", "AWS China"),
    ("us-gov-", "AWS GovCloud (US)"),
    ("eusc-", "the AWS European Sovereign Cloud"),
    ("us-iso", "an isolated partition of AWS"),
    ("eu-iso", "an isolated partition of AWS"),
)
"""By how their regions begin (botocore's partitions)."""

SHOWN = 64
"""So much of a wrong name is repeated at most."""

ROLE_NAME = 64
"""Characters of a role's name at most (IAM, quotas)."""

_ACCOUNT = r"\d{12}"
_NAME = r"[\w+=,.@-]+"
"""Of users, roles and instance profiles (IAM, "IAM identifiers")."""


def region(text: str) -> str:
    """A commercial region's code, in lower case."""
    name = text.strip().lower()
    if name in COMMERCIAL_REGIONS:
        return name
    for beginning, partition in OTHER_PARTITIONS:
        if name.startswith(beginning):
            raise Invalid(
                "region_of_other_partition",
                f"{_shown(name)} is in {partition}, and this connector supports commercial AWS regions only.",
                mend="Use a commercial region such as us-east-1, with an image, subnets and a group of that region.",
            )
    raise Invalid(
        "region_unknown",
        f"{_shown(name)} is not a commercial region of AWS.",
        mend="Enter the region's code, such as us-east-1 (not its name, nor a zone such as us-east-1a).",
    )


def image_id(text: str) -> str:
    return _id(text, "ami", "image_id_malformed", "an AMI's id", "the id that EC2 shows under Images → AMIs")


def subnet_id(text: str) -> str:
    return _id(text, "subnet", "subnet_id_malformed", "a subnet's id", "the id that VPC shows under Subnets")


def security_group_id(text: str) -> str:
    shown = "the id that EC2 shows under Security Groups, not the group's name"
    return _id(text, "sg", "security_group_id_malformed", "a security group's id", shown)


def key_name(text: str) -> str:
    """Up to 255 ASCII characters (EC2 CreateKeyPair)."""
    if re.fullmatch(r"[ -~]{1,255}", text):
        return text
    raise Invalid(
        "key_name_malformed",
        "A key pair's name has 1 to 255 ASCII characters.",
        mend="Enter the key pair's exact name as EC2 shows it, or leave key_name out.",
    )


def instance_profile_arn(text: str) -> str:
    if re.fullmatch(rf"arn:aws:iam::{_ACCOUNT}:instance-profile/(?:[!-~]*/)?{_NAME}", text, re.ASCII):
        return text
    _require_this_partition(text)
    if re.match(rf"arn:aws:iam::{_ACCOUNT}:role/", text, re.ASCII):
        raise Invalid(
            "role_arn_given",
            "This is the ARN of a role, not of an instance profile.",
            mend="Enter the instance profile's ARN, arn:aws:iam::ACCOUNT:instance-profile/NAME, not the role's; "
            "IAM shows it on the role's page.",
        )
    raise Invalid(
        "instance_profile_arn_malformed",
        f"{_shown(text)} is not the ARN of an instance profile.",
        mend="Enter the whole ARN, arn:aws:iam::ACCOUNT:instance-profile/NAME, or leave the field out.",
    )


def role_arn(text: str) -> str:
    """A role that Tensorant may assume: its rights end at the prefix of the name."""
    found = re.fullmatch(rf"arn:aws:iam::{_ACCOUNT}:role/((?:[!-~]*/)?)({_NAME})", text, re.ASCII)
    if found is None:
        _require_this_partition(text)
        raise Invalid(
            "role_arn_malformed",
            f"{_shown(text)} is not the ARN of a role.",
            mend=f"Enter the role's whole ARN, arn:aws:iam::ACCOUNT:role/{ROLE_NAME_PREFIX}NAME.",
        )
    path, name = found.groups()
    if path or not name.startswith(ROLE_NAME_PREFIX) or not len(ROLE_NAME_PREFIX) < len(name) <= ROLE_NAME:
        raise Invalid(
            "role_name_not_allowed",
            f"Tensorant may not assume {_shown(path + name)}: it assumes only roles without a path whose name "
            f"begins with {ROLE_NAME_PREFIX} and has at most {ROLE_NAME} characters.",
            mend=f"Make the role with such a name, for instance {ROLE_NAME_PREFIX}training; the connector's "
            "template does.",
        )
    return text


def access_key_id(text: str) -> str:
    """AKIA is a user's, ASIA a temporary one (IAM, "IAM identifiers", unique ID prefixes)."""
    if re.fullmatch(r"A[KS]IA[A-Z0-9]{12,124}", text):
        return text
    raise Invalid(
        "access_key_id_malformed",
        "An access key id begins with AKIA, or with ASIA where it is temporary, followed by capital letters and "
        "digits.",
        mend="Copy the access key id as IAM shows it under Security credentials → Access keys; the secret has a "
        "field of its own.",
    )


def is_temporary(key_id: str) -> bool:
    """Only a session token makes such a key complete."""
    return key_id.startswith("ASIA")


def _id(text: str, prefix: str, code: str, what: str, where: str) -> str:
    if re.fullmatch(rf"{prefix}-(?:[0-9a-f]{{8}}|[0-9a-f]{{17}})", text):
        return text
    raise Invalid(
        code,
        f"{_shown(text)} is not {what}.",
        mend=f"Enter {where}: {prefix}- and 17 (in old accounts 8) hexadecimal digits.",
    )


def _require_this_partition(arn: str) -> None:
    found = re.match(r"arn:(aws-[a-z-]+):", arn)
    if found:
        raise Invalid(
            "arn_of_other_partition",
            f"The ARN is of the partition {found.group(1)}, and this connector supports commercial AWS regions only.",
            mend="Use an account of the partition aws: its ARNs begin with arn:aws:.",
        )


def _shown(text: str) -> str:
    return f"“{text[:SHOWN]}{'…' if len(text) > SHOWN else ''}”"
