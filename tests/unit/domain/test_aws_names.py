"""What AWS calls things: what is taken, and what a person is told of the rest."""

from __future__ import annotations

from collections.abc import Callable

import boto3
import pytest

from tensorant.domain import aws_names
from tensorant.domain.errors import Invalid

Rule = Callable[[str], str]

PROFILE = "arn:aws:iam::111122223333:instance-profile/training"
ROLE = "arn:aws:iam::111122223333:role/tensorant-training"


def refusal(rule: Rule, text: str) -> Invalid:
    with pytest.raises(Invalid) as caught:
        rule(text)
    assert caught.value.mend
    return caught.value


def test_the_regions_are_those_that_botocore_knows() -> None:
    known = boto3.session.Session().get_available_regions("ec2", partition_name="aws")

    assert set(known) == aws_names.COMMERCIAL_REGIONS


@pytest.mark.parametrize("text", ["us-east-1", "US-EAST-1", "  us-east-1\n"])
def test_a_region_is_kept_in_lower_case(text: str) -> None:
    assert aws_names.region(text) == "us-east-1"


@pytest.mark.parametrize(
    ("text", "partition"),
    [
        ("cn-north-1", "AWS China"),
        ("us-gov-west-1", "AWS GovCloud (US)"),
        ("US-GOV-EAST-1", "AWS GovCloud (US)"),
        ("eusc-de-east-1", "the AWS European Sovereign Cloud"),
        ("us-iso-east-1", "an isolated partition of AWS"),
        ("us-isob-east-1", "an isolated partition of AWS"),
        ("eu-isoe-west-1", "an isolated partition of AWS"),
    ],
)
def test_another_partition_is_named(text: str, partition: str) -> None:
    error = refusal(aws_names.region, text)

    assert error.code == "region_of_other_partition"
    assert partition in error.message
    assert "commercial" in error.message


@pytest.mark.parametrize("text", ["mars-1", "us-east-99", "us-east-1a", "Virginia", "", "us east 1"])
def test_what_is_no_region_is_refused(text: str) -> None:
    assert refusal(aws_names.region, text).code == "region_unknown"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (aws_names.image_id, "ami-0123456789abcdef0"),
        (aws_names.image_id, "ami-12345678"),
        (aws_names.subnet_id, "subnet-0123456789abcdef0"),
        (aws_names.security_group_id, "sg-0123456789abcdef0"),
        (aws_names.key_name, "Olga's key (2026)"),
        (aws_names.instance_profile_arn, PROFILE),
        (aws_names.instance_profile_arn, "arn:aws:iam::111122223333:instance-profile/team/gpu/training"),
        (aws_names.role_arn, ROLE),
        (aws_names.access_key_id, "AKIAIOSFODNN7EXAMPLE"),
        (aws_names.access_key_id, "ASIAIOSFODNN7EXAMPLE"),
    ],
)
def test_a_name_is_kept_as_it_is(rule: Rule, text: str) -> None:
    assert rule(text) == text


@pytest.mark.parametrize(
    ("rule", "text", "code"),
    [
        (aws_names.image_id, "ami-latest", "image_id_malformed"),
        (aws_names.image_id, "ami-0123456789ABCDEF0", "image_id_malformed"),
        (aws_names.image_id, "ami-123456789", "image_id_malformed"),
        (aws_names.subnet_id, "vpc-0123456789abcdef0", "subnet_id_malformed"),
        (aws_names.security_group_id, "default", "security_group_id_malformed"),
        (aws_names.key_name, "", "key_name_malformed"),
        (aws_names.key_name, "k" * 256, "key_name_malformed"),
        (aws_names.key_name, "schlüssel", "key_name_malformed"),
        (aws_names.instance_profile_arn, "training", "instance_profile_arn_malformed"),
        (
            aws_names.instance_profile_arn,
            "arn:aws:iam::1:instance-profile/x",
            "instance_profile_arn_malformed",
        ),
        (aws_names.instance_profile_arn, ROLE, "role_arn_given"),
        (aws_names.instance_profile_arn, "arn:aws-cn:iam::111122223333:role/x", "arn_of_other_partition"),
        (aws_names.role_arn, "tensorant-training", "role_arn_malformed"),
        (aws_names.role_arn, PROFILE, "role_arn_malformed"),
        (aws_names.role_arn, "arn:aws-us-gov:iam::111122223333:role/tensorant-x", "arn_of_other_partition"),
        (aws_names.role_arn, "arn:aws:iam::111122223333:role/training", "role_name_not_allowed"),
        (aws_names.role_arn, "arn:aws:iam::111122223333:role/tensorant-", "role_name_not_allowed"),
        (aws_names.role_arn, "arn:aws:iam::111122223333:role/team/tensorant-x", "role_name_not_allowed"),
        (aws_names.role_arn, f"{ROLE}{'x' * 64}", "role_name_not_allowed"),
        (aws_names.access_key_id, "AROAIOSFODNN7EXAMPLE", "access_key_id_malformed"),
        (aws_names.access_key_id, "akiaiosfodnn7example", "access_key_id_malformed"),
        (aws_names.access_key_id, "AKIA", "access_key_id_malformed"),
    ],
)
def test_a_wrong_name_has_a_reason_of_its_own(rule: Rule, text: str, code: str) -> None:
    assert refusal(rule, text).code == code


def test_a_role_in_place_of_a_profile_is_told_what_to_enter() -> None:
    assert "Enter the instance profile's ARN, arn:aws:iam::ACCOUNT:instance-profile/NAME, not the role's" in (
        refusal(aws_names.instance_profile_arn, ROLE).mend
    )


def test_a_secret_in_the_place_of_the_key_s_id_is_not_repeated() -> None:
    secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

    error = refusal(aws_names.access_key_id, secret)

    assert secret not in f"{error.message}{error.mend}"


def test_a_long_wrong_name_is_cut() -> None:
    assert len(refusal(aws_names.image_id, "a" * 10_000).message) < 200
