"""The policy says what the guide says, with the connection's values and no more."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tensorant.connector.policy import policy
from tensorant.domain.connections import AwsSettings

ACCOUNT = "111122223333"
PROFILE = f"arn:aws:iam::{ACCOUNT}:instance-profile/training"
BARE = AwsSettings(
    region="eu-west-1",
    image_id="ami-0123456789abcdef0",
    subnet_ids=("subnet-0000000a",),
    security_group_id="sg-0123456789abcdef0",
)
WHOLE = replace(BARE, key_name="recovery", instance_profile_arn=PROFILE)
PLACE = f"arn:aws:ec2:eu-west-1:{ACCOUNT}"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/ssm/training-host"

MANAGED_POLICY_CHARACTERS = 6144
"""IAM and STS quotas; white space does not count."""


def guide() -> dict[str, Any]:
    """The guide's policy, its placeholders replaced by hand as its reader would."""
    text = (Path(__file__).parents[2] / "fixtures" / "connector" / "guide_policy.json").read_text()
    for placeholder, value in {
        "REGION": "eu-west-1",
        "ACCOUNT_ID": ACCOUNT,
        "AMI_ID": "ami-0123456789abcdef0",
        "SUBNET_ID": "subnet-0000000a",
        "SECURITY_GROUP_ID": "sg-0123456789abcdef0",
        "KEY_NAME": "recovery",
        "ROLE_NAME": "ssm/training-host",
    }.items():
        text = text.replace(placeholder, value)
    filled: dict[str, Any] = json.loads(text)
    return filled


def statement(document: dict[str, Any], sid: str) -> dict[str, Any]:
    [found] = [each for each in document["Statement"] if each.get("Sid") == sid]
    return dict(found)


def actions(document: dict[str, Any]) -> set[str]:
    listed = [each["Action"] for each in document["Statement"]]
    return {action for each in listed for action in ([each] if isinstance(each, str) else each)}


def test_with_everything_it_is_the_guides_word_for_word() -> None:
    assert policy(WHOLE, ACCOUNT, profile_role_arn=ROLE) == guide()


def test_without_a_key_pair_no_key_pair_is_named() -> None:
    resources = statement(policy(BARE, ACCOUNT), "ApprovedLaunchInputs")["Resource"]

    assert resources == [
        "arn:aws:ec2:eu-west-1::image/ami-0123456789abcdef0",
        f"{PLACE}:subnet/subnet-0000000a",
        f"{PLACE}:security-group/sg-0123456789abcdef0",
        f"{PLACE}:network-interface/*",
    ]


def test_without_a_profile_no_role_may_be_passed() -> None:
    assert "iam:PassRole" not in actions(policy(BARE, ACCOUNT, quota=True, checks=True))


def test_every_subnet_is_named_in_the_connections_order() -> None:
    several = replace(BARE, subnet_ids=("subnet-0000000b", "subnet-0000000a"))

    resources = statement(policy(several, ACCOUNT), "ApprovedLaunchInputs")["Resource"]

    assert resources[1:3] == [f"{PLACE}:subnet/subnet-0000000b", f"{PLACE}:subnet/subnet-0000000a"]


def test_a_role_that_is_not_named_is_taken_to_be_the_profiles_namesake() -> None:
    settings = replace(BARE, instance_profile_arn=f"arn:aws:iam::{ACCOUNT}:instance-profile/ssm/training")

    passing = policy(settings, ACCOUNT)["Statement"][-1]

    assert (passing["Action"], passing["Resource"]) == (
        "iam:PassRole",
        f"arn:aws:iam::{ACCOUNT}:role/ssm/training",
    )


def test_quotas_may_be_read_only_where_that_was_wanted() -> None:
    wanted = {"servicequotas:GetServiceQuota", "servicequotas:GetAWSDefaultServiceQuota"}

    assert actions(policy(BARE, ACCOUNT, quota=True)) - actions(policy(BARE, ACCOUNT)) == wanted


def test_a_check_may_look_at_the_key_pair_and_the_profile_that_there_are() -> None:
    plain, looking = policy(WHOLE, ACCOUNT), policy(WHOLE, ACCOUNT, checks=True)

    assert actions(looking) - actions(plain) == {"ec2:DescribeKeyPairs", "iam:GetInstanceProfile"}
    assert statement(looking, "ReadInstanceProfile")["Resource"] == PROFILE
    assert policy(BARE, ACCOUNT, checks=True) == policy(BARE, ACCOUNT)


@pytest.mark.parametrize(
    ("key_name", "written"), [("*", "${*}"), ("key?", "key${?}"), ("${aws:username}", "${$}{aws:username}")]
)
def test_a_wildcard_in_a_name_stands_for_itself(key_name: str, written: str) -> None:
    resources = statement(policy(replace(BARE, key_name=key_name), ACCOUNT), "ApprovedLaunchInputs")[
        "Resource"
    ]

    assert f"{PLACE}:key-pair/{written}" in resources


def test_the_largest_policy_fits_a_managed_one() -> None:
    largest = replace(
        WHOLE,
        region="ap-southeast-2",
        subnet_ids=tuple(f"subnet-{number:017x}" for number in range(16)),
        key_name="k" * 255,
        instance_profile_arn=f"arn:aws:iam::{ACCOUNT}:instance-profile/{'p' * 128}",
    )

    document = json.dumps(policy(largest, ACCOUNT, quota=True, checks=True), separators=(",", ":"))

    assert len(document) <= MANAGED_POLICY_CHARACTERS
