"""What a check says of credentials, image, GPU types and prices: what was seen, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tensorant.adapters.ec2.check_items import Fault, failed, item, warning
from tensorant.adapters.ec2.clients import Identity
from tensorant.domain.connections import AwsSettings, CheckItem, GpuType, ImageFacts

ANOTHER_IMAGE = "Choose an x86_64 Linux AMI with an EBS root disk, for instance the Deep Learning Base AMI."


def credentials(who: Identity) -> CheckItem:
    """Whose they are. The root user's keys may do everything, and no policy can bound them."""
    faults = [
        failed(
            f"The keys are those of the root user of account {who.account_id}.",
            "Do not use root-account keys: make a user for this connection, and delete the root user's keys.",
        )
    ]
    return item("credentials", faults if who.is_root else (), good=f"account {who.account_id}, {who.arn}")


def role(arn: str, external_id: str, *, open_to_anybody: bool) -> CheckItem:
    """Without the external id in its trust policy, anybody could make Tensorant act in the account."""
    faults = [
        failed(
            f"{arn} can be assumed without the external id.",
            f"Add the condition StringEquals sts:ExternalId = {external_id} to its trust policy, then check again.",
        )
    ]
    return item("role", faults if open_to_anybody else (), good=f"{arn}, only with its external id")


# -- image -----------------------------------------------------------------------------------------------


def image(
    images: Sequence[Mapping[str, Any]], settings: AwsSettings, *, now: datetime
) -> tuple[CheckItem, ImageFacts | None]:
    """The AMI, and what a launch must know of it; None where it can't be launched."""
    if not images:
        absent = failed(
            f"{settings.image_id} does not exist in {settings.region}, or is not shared with the account.",
            "Check the AMI's id, region and sharing, and whether the account's Allowed AMIs setting hides it.",
        )
        return item("image", [absent], good=""), None
    [found] = images
    faults = [
        Fault(fault.verdict, f"{settings.image_id}: {fault.seen}.", fault.mend)
        for fault in (*_image_failures(found), *_image_warnings(found, now))
    ]
    root = _root(found)
    size = f"{root['Ebs'].get('VolumeSize')} GiB on {found['RootDeviceName']}" if root else ""
    seen = item("image", faults, good=f"{found.get('Name', settings.image_id)}, {size}")
    return seen, None if any(_image_failures(found)) else _facts(found)


def _image_failures(found: Mapping[str, Any]) -> Iterator[Fault]:
    platform = found.get("PlatformDetails", "")
    wanted = (
        (
            found.get("State") == "available",
            f"its state is {found.get('State')}",
            "Wait until the AMI is available, or choose another.",
        ),
        (
            found.get("Architecture") == "x86_64",
            f"its architecture is {found.get('Architecture')}",
            ANOTHER_IMAGE,
        ),
        (found.get("RootDeviceType") == "ebs", "its root disk is not on EBS", ANOTHER_IMAGE),
        (found.get("VirtualizationType") == "hvm", "it is not an HVM image", ANOTHER_IMAGE),
        (bool(found.get("EnaSupport")), "it does not support ENA, which GPU types need", ANOTHER_IMAGE),
        (
            platform == "Linux/UNIX" and found.get("UsageOperation") == "RunInstances",
            f"its platform is {platform or 'unknown'}, which is billed otherwise than Linux/UNIX",
            ANOTHER_IMAGE,
        ),
        (
            not any(code.get("ProductCodeType") == "marketplace" for code in found.get("ProductCodes", [])),
            "it carries a Marketplace product code",
            "Use an AMI without Marketplace product codes; they add a subscription and fees.",
        ),
        (_root(found) is not None, "its root disk is not in its block device mappings", ANOTHER_IMAGE),
    )
    return (failed(wrong, mend) for right, wrong, mend in wanted if not right)


def _image_warnings(found: Mapping[str, Any], now: datetime) -> Iterator[Fault]:
    deprecated = found.get("DeprecationTime")
    if deprecated and datetime.fromisoformat(deprecated) <= now:
        yield warning(
            f"it is deprecated since {deprecated[:10]}", "Choose a newer AMI; this one may be withdrawn."
        )
    if found.get("ImageAllowed") is False:
        yield warning(
            "the account's Allowed AMIs setting does not list it, and may refuse its launch",
            "Ask your administrator to allow the AMI.",
        )


def _root(found: Mapping[str, Any]) -> Mapping[str, Any] | None:
    mappings = found.get("BlockDeviceMappings", [])
    name = found.get("RootDeviceName")
    return next((each for each in mappings if each.get("DeviceName") == name and "Ebs" in each), None)


def _facts(found: Mapping[str, Any]) -> ImageFacts:
    root = _root(found) or {}
    devices = (each["DeviceName"] for each in found.get("BlockDeviceMappings", []))
    return ImageFacts(
        root_device=found["RootDeviceName"],
        root_gib=int(root["Ebs"]["VolumeSize"]),
        other_devices=tuple(name for name in devices if name != found["RootDeviceName"]),
    )


# -- GPU types and prices --------------------------------------------------------------------------------


def gpu_types(types: Sequence[GpuType], subnets: Sequence[Mapping[str, Any]]) -> CheckItem:
    """At least one type that can be used, and a warning for a subnet that can have none."""
    if not types:
        none = failed(
            "The subnets' zones offer no usable GPU type.",
            "Choose a subnet in a zone that offers single-GPU instances.",
        )
        return item("gpu_types", [none], good="")
    offering = {zone for each in types for zone in each.zones}
    bare = [
        warning(
            f"{each['AvailabilityZone']}, the zone of {each['SubnetId']}, offers no usable GPU type.",
            "Choose a subnet in another zone in its place.",
        )
        for each in subnets
        if each["AvailabilityZone"] not in offering
    ]
    return item("gpu_types", bare, good=f"{len(types)} GPU types in {', '.join(sorted(offering))}")


def prices(types: Sequence[GpuType], *, disk_is_priced: bool) -> CheckItem:
    """A type without exactly one price is not launched: it is never guessed."""
    without = [each.instance_type for each in types if each.usd_per_hour is None]
    faults: list[Fault] = []
    mend = "What has no price can't be launched; check again later, or choose another type."
    if types and len(without) == len(types):
        faults.append(failed("The price list has no single price for any of the GPU types.", mend))
    elif without:
        faults.append(warning(f"{len(without)} of {len(types)} GPU types have no single price.", mend))
    if not disk_is_priced:
        faults.append(warning("The price list has no single price for gp3 disks.", mend))
    good = f"{len(types)} GPU types and gp3 disks have prices" if types else "gp3 disks have a price"
    return item("prices", faults, good=good)
