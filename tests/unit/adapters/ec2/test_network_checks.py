"""What a connection's check says of subnets and security groups."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant.adapters.ec2 import network_checks
from tensorant.domain.connections import CheckItem, CheckVerdict
from tests.support.worlds import AWS_SETTINGS, FIRST_SUBNET, SECOND_SUBNET

OK, WARNING, FAILED = CheckVerdict.OK, CheckVerdict.WARNING, CheckVerdict.FAILED
EVERYWHERE_OUT = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}


def subnet(subnet_id: str = FIRST_SUBNET, **changes: Any) -> dict[str, Any]:
    return {
        "SubnetId": subnet_id,
        "VpcId": "vpc-1",
        "State": "available",
        "AvailabilityZone": "us-east-1a",
        "AvailableIpAddressCount": 200,
        "MapPublicIpOnLaunch": False,
        "AssignIpv6AddressOnCreation": False,
        "Ipv6Native": False,
        **changes,
    }


BOTH = [subnet(), subnet(SECOND_SUBNET, AvailabilityZone="us-east-1b")]


def second(**changes: Any) -> list[dict[str, Any]]:
    return [subnet(), subnet(SECOND_SUBNET, **changes)]


def said(item: CheckItem, verdict: CheckVerdict, *words: str) -> None:
    assert item.verdict is verdict, item
    assert all(word in item.seen for word in words), item
    assert (item.mend == "") is (verdict is OK)


def test_good_subnets_tell_their_zones() -> None:
    item = network_checks.subnets(BOTH, AWS_SETTINGS)

    said(item, OK, "subnet-0000000a in us-east-1a", "subnet-0000000b in us-east-1b")


@pytest.mark.parametrize(
    ("found", "verdict", "words"),
    [
        ([], FAILED, ["subnet-0000000a does not exist", "subnet-0000000b does not exist"]),
        ([subnet()], FAILED, ["subnet-0000000b does not exist in us-east-1"]),
        (second(VpcId="vpc-2"), FAILED, ["different VPCs", "subnet-0000000b in vpc-2"]),
        (second(State="pending"), FAILED, ["subnet-0000000b is pending"]),
        (second(Ipv6Native=True), FAILED, ["subnet-0000000b has no IPv4 addresses"]),
        (second(OutpostArn="arn:aws:outposts:…"), FAILED, ["subnet-0000000b is on an Outpost"]),
        (
            second(AvailabilityZone="us-east-1-bos-1a"),
            FAILED,
            ["subnet-0000000b is in us-east-1-bos-1a, a Local or Wavelength Zone"],
        ),
        (second(AvailableIpAddressCount=0), WARNING, ["subnet-0000000b has no free address"]),
        (
            [subnet(AvailableIpAddressCount=0), subnet(SECOND_SUBNET, AvailableIpAddressCount=0)],
            FAILED,
            ["subnet-0000000a, subnet-0000000b has no free address"],
        ),
        (second(MapPublicIpOnLaunch=True), WARNING, ["subnet-0000000b assigns public addresses"]),
        (second(AssignIpv6AddressOnCreation=True), WARNING, ["subnet-0000000b assigns IPv6 addresses"]),
    ],
)
def test_subnets_that_do_not_fit_are_named(found: list[Any], verdict: CheckVerdict, words: list[str]) -> None:
    said(network_checks.subnets(found, AWS_SETTINGS), verdict, *words)


def test_every_fault_of_the_subnets_is_told_at_once() -> None:
    item = network_checks.subnets(second(VpcId="vpc-2", Ipv6Native=True), AWS_SETTINGS)

    said(item, FAILED, "different VPCs", "no IPv4 addresses")
    assert item.mend == "Choose subnets of one VPC. Choose another subnet."


# -- security group ----------------------------------------------------------------------------------------


def group(vpc: str = "vpc-1", out: Any = (EVERYWHERE_OUT,), into: Any = ()) -> list[dict[str, Any]]:
    return [{"VpcId": vpc, "IpPermissionsEgress": list(out), "IpPermissions": list(into)}]


def test_a_security_group_must_be_there_and_of_the_subnets_vpc() -> None:
    said(network_checks.security_group(group(), BOTH, AWS_SETTINGS), OK, "vpc-1")
    said(network_checks.security_group([], BOTH, AWS_SETTINGS), FAILED, "does not exist")
    item = network_checks.security_group(group("vpc-2"), BOTH, AWS_SETTINGS)
    said(item, FAILED, "belongs to vpc-2, but subnet-0000000a is in vpc-1")
    assert item.mend == "Choose a security group of vpc-1, or a subnet of vpc-2."


def rule(protocol: str = "tcp", ports: tuple[int, int] | None = (443, 443), **to: Any) -> dict[str, Any]:
    range_ = {"FromPort": ports[0], "ToPort": ports[1]} if ports else {}
    return {"IpProtocol": protocol, **range_, **(to or {"IpRanges": [{"CidrIp": "10.0.0.0/8"}]})}


@pytest.mark.parametrize(
    "out",
    [
        rule(),
        rule(ports=(0, 65535)),
        rule(ports=(400, 500), PrefixListIds=[{"PrefixListId": "pl-1"}]),
        rule(UserIdGroupPairs=[{"GroupId": "sg-2"}]),
        rule(Ipv6Ranges=[{"CidrIpv6": "::/0"}]),
        rule("-1", None),
    ],
)
def test_a_group_that_lets_https_out_to_somewhere_is_good(out: dict[str, Any]) -> None:
    said(network_checks.security_group(group(out=[out]), BOTH, AWS_SETTINGS), OK)


@pytest.mark.parametrize(
    "out", [[], [rule(ports=(80, 80))], [rule("udp")], [rule(IpRanges=[])], [rule("-1", None, IpRanges=[])]]
)
def test_a_group_without_a_way_out_is_a_warning(out: list[Any]) -> None:
    item = network_checks.security_group(group(out=out), BOTH, AWS_SETTINGS)

    said(item, WARNING, "lets no HTTPS out")


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        ({"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}, WARNING),
        ({"Ipv6Ranges": [{"CidrIpv6": "::/0"}]}, WARNING),
        ({"IpRanges": [{"CidrIp": "10.0.0.0/8"}]}, OK),
        ({"UserIdGroupPairs": [{"GroupId": "sg-2"}]}, OK),
    ],
)
def test_a_group_that_lets_everybody_in_is_a_warning(source: dict[str, Any], verdict: CheckVerdict) -> None:
    into = [rule(ports=(22, 22), **source)]

    said(network_checks.security_group(group(into=into), BOTH, AWS_SETTINGS), verdict)
