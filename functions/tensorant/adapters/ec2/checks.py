"""What a connection's check looks at, one item a function: what was seen, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorant.domain.connections import AwsSettings, CheckItem, CheckVerdict, ImageFacts

OK, WARNING, FAILED = CheckVerdict.OK, CheckVerdict.WARNING, CheckVerdict.FAILED


def image(images: Sequence[Mapping[str, Any]], settings: AwsSettings) -> tuple[CheckItem, ImageFacts | None]:
    """The AMI: available, x86_64, HVM, EBS root, Linux, no Marketplace product codes."""
    if not images:
        return (
            item(
                "image",
                FAILED,
                f"{settings.image_id} does not exist or is not shared with the account.",
                "Check the AMI's id, region and sharing.",
            ),
            None,
        )
    found = images[0]
    for wrong, mend in _image_faults(found):
        return item("image", FAILED, f"{settings.image_id}: {wrong}.", mend), None
    facts = _facts(found)
    seen = f"{found.get('Name', settings.image_id)}, {facts.root_gib} GiB on {facts.root_device}"
    return item("image", OK, seen), facts


def _image_faults(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    another = "Choose an x86_64 Linux AMI with an EBS root disk, for instance the Deep Learning Base AMI."
    wanted = (
        (
            found.get("State") == "available",
            f"its state is {found.get('State')}",
            "Wait until the AMI is available.",
        ),
        (found.get("Architecture") == "x86_64", f"its architecture is {found.get('Architecture')}", another),
        (found.get("RootDeviceType") == "ebs", "its root disk is not on EBS", another),
        (found.get("VirtualizationType") == "hvm", "it is not an HVM image", another),
        (str(found.get("Platform", "")).lower() != "windows", "it is a Windows image", another),
        (
            not any(code.get("ProductCodeType") == "marketplace" for code in found.get("ProductCodes", [])),
            "it carries a Marketplace product code",
            "Use an AMI without Marketplace product codes; they add a subscription and fees.",
        ),
        (_root(found) is not None, "its root disk is not in its block device mappings", another),
    )
    return [(wrong, mend) for right, wrong, mend in wanted if not right]


def _root(found: Mapping[str, Any]) -> Mapping[str, Any] | None:
    mappings = found.get("BlockDeviceMappings", [])
    return next(
        (
            each
            for each in mappings
            if each.get("DeviceName") == found.get("RootDeviceName") and "Ebs" in each
        ),
        None,
    )


def _facts(found: Mapping[str, Any]) -> ImageFacts:
    root = _root(found) or {}
    others = tuple(
        each["DeviceName"]
        for each in found.get("BlockDeviceMappings", [])
        if each["DeviceName"] != found["RootDeviceName"]
    )
    return ImageFacts(
        root_device=found["RootDeviceName"], root_gib=int(root["Ebs"]["VolumeSize"]), other_devices=others
    )


def subnets(found: Sequence[Mapping[str, Any]], settings: AwsSettings) -> CheckItem:
    """All there, available, with free addresses, in one VPC."""
    missing = set(settings.subnet_ids) - {each["SubnetId"] for each in found}
    if missing:
        return item(
            "subnets",
            FAILED,
            f"{', '.join(sorted(missing))} does not exist in {settings.region}.",
            "Check the subnet's id and region.",
        )
    if len({each["VpcId"] for each in found}) > 1:
        return item("subnets", FAILED, "The subnets belong to different VPCs.", "Choose subnets of one VPC.")
    full = [each["SubnetId"] for each in found if each.get("AvailableIpAddressCount", 0) < 1]
    if full:
        return item(
            "subnets",
            FAILED,
            f"{', '.join(full)} has no free address.",
            "Free addresses, or choose another subnet.",
        )
    if any(each.get("MapPublicIpOnLaunch") for each in found):
        return item(
            "subnets",
            WARNING,
            "A subnet assigns public addresses; Tensorant's machines get none.",
            "Give the subnet a NAT route: an internet gateway alone does not reach a machine without a public address.",
        )
    return item(
        "subnets", OK, ", ".join(f"{each['SubnetId']} in {each['AvailabilityZone']}" for each in found)
    )


def security_group(
    found: Sequence[Mapping[str, Any]], subnets_found: Sequence[Mapping[str, Any]], settings: AwsSettings
) -> CheckItem:
    """There, and of the subnets' VPC."""
    if not found:
        return item(
            "security_group",
            FAILED,
            f"{settings.security_group_id} does not exist in {settings.region}.",
            "Check the security group's id and region.",
        )
    vpc = found[0]["VpcId"]
    other = next((each for each in subnets_found if each["VpcId"] != vpc), None)
    if other is not None:
        return item(
            "security_group",
            FAILED,
            f"{settings.security_group_id} belongs to {vpc}, but {other['SubnetId']} is in {other['VpcId']}.",
            f"Choose a security group of {other['VpcId']}, or a subnet of {vpc}.",
        )
    return item("security_group", OK, f"{settings.security_group_id} in {vpc}")


def catalog(usable: int, priced: int) -> CheckItem:
    """At least one type that can be used, and its price."""
    if not usable:
        return item(
            "gpu_types",
            FAILED,
            "The subnets' zones offer no usable GPU type.",
            "Choose a subnet in a zone with single-GPU instances.",
        )
    if priced < usable:
        return item(
            "gpu_types",
            WARNING,
            f"{usable} GPU types, {usable - priced} without a price.",
            "Types without a price can't be launched.",
        )
    return item("gpu_types", OK, f"{usable} GPU types with prices")


def item(name: str, verdict: CheckVerdict, seen: str, mend: str = "") -> CheckItem:
    return CheckItem(name=name, verdict=verdict, seen=seen, mend=mend)
