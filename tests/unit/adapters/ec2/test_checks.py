"""What a connection's check says of credentials, roles, images, GPU types and prices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tensorant.adapters.ec2 import checks
from tensorant.adapters.ec2.clients import Identity
from tensorant.domain.connections import CheckItem, CheckVerdict, GpuType, ImageFacts
from tests.support.worlds import AWS_SETTINGS, NOON, gpu_type

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
        "EnaSupport": True,
        "PlatformDetails": "Linux/UNIX",
        "UsageOperation": "RunInstances",
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 65}},
            {"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 100}},
            {"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"},
        ],
        **changes,
    }


def said(item: CheckItem, verdict: CheckVerdict, *words: str) -> None:
    assert item.verdict is verdict, item
    assert all(word in item.seen for word in words), item
    assert (item.mend == "") is (verdict is OK)


def test_a_good_image_tells_its_disks() -> None:
    item, facts = checks.image([image()], AWS_SETTINGS, now=NOON)

    said(item, OK, "Deep Learning Base", "65 GiB")
    assert facts == ImageFacts(root_device="/dev/sda1", root_gib=65, other_devices=("/dev/sdf", "/dev/sdb"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"State": "pending"}, "its state is pending"),
        ({"Architecture": "arm64"}, "its architecture is arm64"),
        ({"RootDeviceType": "instance-store"}, "not on EBS"),
        ({"VirtualizationType": "paravirtual"}, "not an HVM image"),
        ({"EnaSupport": False}, "does not support ENA"),
        ({"PlatformDetails": "Windows"}, "its platform is Windows"),
        ({"PlatformDetails": "Red Hat Enterprise Linux"}, "billed otherwise"),
        ({"UsageOperation": "RunInstances:0010"}, "billed otherwise"),
        ({"PlatformDetails": None}, "its platform is unknown"),
        ({"ProductCodes": [{"ProductCodeId": "x", "ProductCodeType": "marketplace"}]}, "Marketplace"),
        ({"BlockDeviceMappings": []}, "not in its block device mappings"),
        ({"BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "NoDevice": ""}]}, "not in its block device"),
    ],
)
def test_an_image_that_can_not_be_used_is_told_why(changes: dict[str, Any], words: str) -> None:
    item, facts = checks.image([image(**changes)], AWS_SETTINGS, now=NOON)

    said(item, FAILED, words)
    assert facts is None


def test_another_kind_of_product_code_is_no_fault() -> None:
    code = {"ProductCodeId": "x", "ProductCodeType": "devpay"}

    assert checks.image([image(ProductCodes=[code])], AWS_SETTINGS, now=NOON)[0].verdict is OK


def test_an_image_that_is_not_there_is_told_by_its_id() -> None:
    item, facts = checks.image([], AWS_SETTINGS, now=NOON)

    said(item, FAILED, AWS_SETTINGS.image_id)
    assert facts is None


def test_every_fault_of_an_image_is_told_at_once() -> None:
    item, _ = checks.image([image(Architecture="arm64", EnaSupport=False)], AWS_SETTINGS, now=NOON)

    said(item, FAILED, "arm64", "ENA")
    assert item.mend == checks.ANOTHER_IMAGE


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"DeprecationTime": "2026-07-31T23:59:59.000Z"}, "deprecated since 2026-07-31"),
        ({"ImageAllowed": False}, "Allowed AMIs"),
    ],
)
def test_an_image_that_may_be_withdrawn_is_a_warning_and_can_be_launched(
    changes: dict[str, Any], words: str
) -> None:
    item, facts = checks.image([image(**changes)], AWS_SETTINGS, now=NOON)

    said(item, WARNING, words)
    assert facts is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"DeprecationTime": "2026-08-02T00:00:00.000Z"},
        {"ImageAllowed": True},
        {"BootMode": "uefi-preferred"},
        {"TpmSupport": "v2.0"},
    ],
)
def test_what_fits_every_type_is_no_fault(changes: dict[str, Any]) -> None:
    said(checks.image([image(**changes)], AWS_SETTINGS, now=NOON)[0], OK)


# -- credentials and roles ---------------------------------------------------------------------------------


def test_credentials_tell_whose_they_are() -> None:
    item = checks.credentials(Identity(account_id="111122223333", arn="arn:aws:iam::111122223333:user/t"))

    said(item, OK, "account 111122223333", "user/t")


def test_the_root_users_keys_are_refused() -> None:
    item = checks.credentials(Identity(account_id="111122223333", arn="arn:aws:iam::111122223333:root"))

    said(item, FAILED, "root user of account 111122223333")
    assert "Do not use root-account keys" in item.mend


def test_a_role_that_anybody_could_have_used_is_refused_with_the_condition_to_add() -> None:
    arn = "arn:aws:iam::111122223333:role/tensorant-x"

    said(checks.role(arn, "made-by-us", open_to_anybody=False), OK, arn)
    item = checks.role(arn, "made-by-us", open_to_anybody=True)
    said(item, FAILED, "without the external id")
    assert "StringEquals sts:ExternalId = made-by-us" in item.mend


# -- GPU types and prices ----------------------------------------------------------------------------------


def types(*prices: str | None) -> list[GpuType]:
    return [gpu_type(f"g6.{number}xlarge", price) for number, price in enumerate(prices)]


def test_a_connection_needs_a_type_that_its_zones_offer() -> None:
    subnets = [{"SubnetId": "subnet-1", "AvailabilityZone": "us-east-1a"}]

    said(checks.gpu_types(types("1"), subnets), OK, "1 GPU types in us-east-1a")
    said(checks.gpu_types([], subnets), FAILED, "no usable GPU type")


def test_a_subnet_in_a_zone_without_gpus_is_a_warning() -> None:
    subnets = [
        {"SubnetId": "subnet-1", "AvailabilityZone": "us-east-1a"},
        {"SubnetId": "subnet-2", "AvailabilityZone": "us-east-1e"},
    ]
    two_zones = [replace(each, zones=("us-east-1a", "us-east-1e")) for each in types("1")]

    said(checks.gpu_types(types("1"), subnets), WARNING, "us-east-1e, the zone of subnet-2")
    said(checks.gpu_types(two_zones, subnets), OK)


@pytest.mark.parametrize(
    ("found", "disk", "verdict", "words"),
    [
        (types("1", "2"), True, OK, ["2 GPU types and gp3 disks have prices"]),
        ([], True, OK, ["gp3 disks have a price"]),
        (types("1", None, None), True, WARNING, ["2 of 3 GPU types"]),
        (types("1", None), False, WARNING, ["1 of 2 GPU types", "gp3 disks"]),
        (types(None, None), True, FAILED, ["any of the GPU types"]),
    ],
)
def test_what_has_no_price_is_told(
    found: list[GpuType], *, disk: bool, verdict: CheckVerdict, words: list[str]
) -> None:
    said(checks.prices(found, disk_is_priced=disk), verdict, *words)
