"""What a connection's check says of images, subnets and security groups."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant.adapters.ec2 import checks
from tensorant.domain.connections import CheckItem, CheckVerdict, ImageFacts
from tests.support.worlds import AWS_SETTINGS, FIRST_SUBNET, SECOND_SUBNET

OK, WARNING, FAILED = CheckVerdict.OK, CheckVerdict.WARNING, CheckVerdict.FAILED


def image(**changes: Any) -> dict[str, Any]:
    return {
        "ImageId": "ami-0123456789abcdef0",
        "Name": "Deep Learning Base",
        "State": "available",
        "Architecture": "x86_64",
        "RootDeviceType": "ebs",
        "RootDeviceName": "/dev/sda1",
        "VirtualizationType": "hvm",
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 65}},
            {"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 100}},
            {"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"},
        ],
        **changes,
    }


def subnet(subnet_id: str = FIRST_SUBNET, **changes: Any) -> dict[str, Any]:
    return {
        "SubnetId": subnet_id,
        "VpcId": "vpc-1",
        "AvailabilityZone": "us-east-1a",
        "AvailableIpAddressCount": 200,
        "MapPublicIpOnLaunch": False,
        **changes,
    }


BOTH = [subnet(), subnet(SECOND_SUBNET, AvailabilityZone="us-east-1b")]


def said(item: CheckItem, verdict: CheckVerdict, *words: str) -> None:
    assert item.verdict is verdict, item
    assert all(word in item.seen for word in words), item
    assert (item.mend == "") is (verdict is OK)


def test_a_good_image_tells_its_disks() -> None:
    item, facts = checks.image([image()], AWS_SETTINGS)

    said(item, OK, "Deep Learning Base", "65 GiB")
    assert facts == ImageFacts(root_device="/dev/sda1", root_gib=65, other_devices=("/dev/sdf", "/dev/sdb"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"State": "pending"}, "its state is pending"),
        ({"Architecture": "arm64"}, "its architecture is arm64"),
        ({"RootDeviceType": "instance-store"}, "not on EBS"),
        ({"VirtualizationType": "paravirtual"}, "not an HVM image"),
        ({"Platform": "Windows"}, "Windows"),
        ({"ProductCodes": [{"ProductCodeId": "x", "ProductCodeType": "marketplace"}]}, "Marketplace"),
        ({"BlockDeviceMappings": []}, "not in its block device mappings"),
        ({"BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "NoDevice": ""}]}, "not in its block device"),
    ],
)
def test_an_image_that_can_not_be_used_is_told_why(changes: dict[str, Any], words: str) -> None:
    item, facts = checks.image([image(**changes)], AWS_SETTINGS)

    said(item, FAILED, words)
    assert facts is None


def test_another_kind_of_product_code_is_no_fault() -> None:
    code = {"ProductCodeId": "x", "ProductCodeType": "devpay"}

    assert checks.image([image(ProductCodes=[code])], AWS_SETTINGS)[0].verdict is OK


def test_an_image_that_is_not_there_is_told_by_its_id() -> None:
    item, facts = checks.image([], AWS_SETTINGS)

    said(item, FAILED, AWS_SETTINGS.image_id)
    assert facts is None


def test_good_subnets_tell_their_zones() -> None:
    said(checks.subnets(BOTH, AWS_SETTINGS), OK, "subnet-0000000a in us-east-1a", "us-east-1b")


@pytest.mark.parametrize(
    ("found", "verdict", "words"),
    [
        ([], FAILED, "subnet-0000000a, subnet-0000000b does not exist"),
        ([subnet()], FAILED, "subnet-0000000b does not exist in us-east-1"),
        ([subnet(), subnet(SECOND_SUBNET, VpcId="vpc-2")], FAILED, "different VPCs"),
        ([subnet(), subnet(SECOND_SUBNET, AvailableIpAddressCount=0)], FAILED, "subnet-0000000b has no free"),
        ([subnet(), subnet(SECOND_SUBNET, MapPublicIpOnLaunch=True)], WARNING, "public addresses"),
    ],
)
def test_subnets_that_do_not_fit_are_named(found: list[Any], verdict: CheckVerdict, words: str) -> None:
    said(checks.subnets(found, AWS_SETTINGS), verdict, words)


def test_a_security_group_must_be_there_and_of_the_subnets_vpc() -> None:
    ours, theirs = [{"VpcId": "vpc-1"}], [{"VpcId": "vpc-2"}]

    said(checks.security_group(ours, BOTH, AWS_SETTINGS), OK, "vpc-1")
    said(checks.security_group([], BOTH, AWS_SETTINGS), FAILED, "does not exist")
    item = checks.security_group(theirs, BOTH, AWS_SETTINGS)
    said(item, FAILED, "belongs to vpc-2, but subnet-0000000a is in vpc-1")
    assert item.mend == "Choose a security group of vpc-1, or a subnet of vpc-2."


@pytest.mark.parametrize(
    ("usable", "priced", "verdict", "words"),
    [
        (0, 0, FAILED, "no usable GPU type"),
        (3, 3, OK, "3 GPU types with prices"),
        (3, 1, WARNING, "3 GPU types, 2 without a price"),
    ],
)
def test_a_catalog_needs_a_type_and_its_price(
    usable: int, priced: int, verdict: CheckVerdict, words: str
) -> None:
    said(checks.catalog(usable, priced), verdict, words)
