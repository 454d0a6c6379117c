"""What a check says of subnets and security group. Training needs a way out, and no way in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tensorant.adapters.ec2.check_items import Fault, failed, item, warning
from tensorant.domain.connections import AwsSettings, CheckItem

HTTPS = 443
ANYWHERE = frozenset({"0.0.0.0/0", "::/0"})
ANOTHER_SUBNET = "Choose another subnet."

Described = Mapping[str, Any]


# -- subnets ---------------------------------------------------------------------------------------------


def subnets(found: Sequence[Described], settings: AwsSettings) -> CheckItem:
    """All there, available, in one VPC, with addresses that a private IPv4 machine can have."""
    missing = [each for each in settings.subnet_ids if each not in {seen["SubnetId"] for seen in found}]
    faults = [
        failed(f"{each} does not exist in {settings.region}.", "Check the subnet's id and region.")
        for each in missing
    ]
    if len({each["VpcId"] for each in found}) > 1:
        where = ", ".join(f"{each['SubnetId']} in {each['VpcId']}" for each in found)
        faults.append(failed(f"The subnets belong to different VPCs: {where}.", "Choose subnets of one VPC."))
    for each in found:
        faults += [*_subnet_failures(each, settings.region), *_subnet_warnings(each)]
    faults += _fullness(found)
    good = ", ".join(f"{each['SubnetId']} in {each['AvailabilityZone']}" for each in found)
    return item("subnets", faults, good=good)


def _subnet_failures(found: Described, region: str) -> Iterator[Fault]:
    """A Region's own zones are named by the Region and a letter (EC2 user guide, Regions and Zones)."""
    name, zone = found["SubnetId"], found["AvailabilityZone"]
    if found.get("State", "available") != "available":
        yield failed(f"{name} is {found['State']}.", "Wait until the subnet is available, or choose another.")
    if found.get("Ipv6Native"):
        yield failed(f"{name} has no IPv4 addresses.", ANOTHER_SUBNET)
    if found.get("OutpostArn"):
        yield failed(f"{name} is on an Outpost, which the price list does not price.", ANOTHER_SUBNET)
    if zone[:-1] != region:
        yield failed(
            f"{name} is in {zone}, a Local or Wavelength Zone, whose prices are not the Region's.",
            "Choose a subnet in one of the Region's own zones.",
        )


def _subnet_warnings(found: Described) -> Iterator[Fault]:
    name = found["SubnetId"]
    if found.get("MapPublicIpOnLaunch"):
        yield warning(
            f"{name} assigns public addresses; Tensorant's machines get none.",
            "Give the subnet a NAT route: an internet gateway alone does not reach a machine without a public address.",
        )
    if found.get("AssignIpv6AddressOnCreation"):
        yield warning(
            f"{name} assigns IPv6 addresses, which are public.",
            "Use a private subnet without them, or see that its routes and security group let nobody in.",
        )


def _fullness(found: Sequence[Described]) -> Iterator[Fault]:
    """A full subnet is passed over at launch, as long as another has room."""
    full = [each["SubnetId"] for each in found if each.get("AvailableIpAddressCount", 0) < 1]
    if full:
        verdict = failed if len(full) == len(found) else warning
        yield verdict(f"{', '.join(full)} has no free address.", "Free addresses, or choose another subnet.")


# -- security group --------------------------------------------------------------------------------------


def security_group(
    found: Sequence[Described], subnets_found: Sequence[Described], settings: AwsSettings
) -> CheckItem:
    """There, of the subnets' VPC, with a way out for HTTPS and no way in for everybody."""
    if not found:
        missing = failed(
            f"{settings.security_group_id} does not exist in {settings.region}.",
            "Check the security group's id and region.",
        )
        return item("security_group", [missing], good="")
    [group] = found
    faults = [*_other_network(group, subnets_found, settings), *_rule_warnings(group, settings)]
    return item("security_group", faults, good=f"{settings.security_group_id} in {group['VpcId']}")


def _other_network(
    group: Described, subnets_found: Sequence[Described], settings: AwsSettings
) -> Iterator[Fault]:
    vpc = group["VpcId"]
    other = next((each for each in subnets_found if each["VpcId"] != vpc), None)
    if other is not None:
        yield failed(
            f"{settings.security_group_id} belongs to {vpc}, but {other['SubnetId']} is in {other['VpcId']}.",
            f"Choose a security group of {other['VpcId']}, or a subnet of {vpc}.",
        )


def _rule_warnings(group: Described, settings: AwsSettings) -> Iterator[Fault]:
    if not any(_lets_https_through(rule) for rule in group.get("IpPermissionsEgress", [])):
        yield warning(
            f"{settings.security_group_id} lets no HTTPS out.",
            "Permit outbound HTTPS (TCP 443): to the container registry, model downloads and the storage.",
        )
    if any(_destinations(rule) & ANYWHERE for rule in group.get("IpPermissions", [])):
        yield warning(
            f"{settings.security_group_id} lets connections in from everywhere.",
            "Training needs no inbound port; for recovery allow port 22 from your private network only.",
        )


def _lets_https_through(rule: Described) -> bool:
    if not _destinations(rule):
        return False
    protocol = rule.get("IpProtocol")
    if protocol == "-1":
        return True
    return protocol in {"tcp", "6"} and rule.get("FromPort", 0) <= HTTPS <= rule.get("ToPort", 65535)


def _destinations(rule: Described) -> set[str]:
    """Of an outbound rule, or the sources of an inbound one."""
    kinds = (
        ("IpRanges", "CidrIp"),
        ("Ipv6Ranges", "CidrIpv6"),
        ("PrefixListIds", "PrefixListId"),
        ("UserIdGroupPairs", "GroupId"),
    )
    return {each[key] for name, key in kinds for each in rule.get(name, []) if key in each}
