"""What counts against a quota of vCPUs, and what is said where it can't be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from tensorant.adapters.ec2.clients import Clients
from tensorant.adapters.ec2.families import family_of
from tensorant.adapters.ec2.quotas import vcpu_quota
from tensorant.domain.quotas import VcpuQuota

G = {"ServiceCode": "ec2", "QuotaCode": "L-DB2E81BA"}


class Account:
    """EC2 and Service Quotas with answers that are written down."""

    def __init__(self) -> None:
        session = boto3.Session(aws_access_key_id="x", aws_secret_access_key="x", region_name="us-east-1")
        self.clients = Clients(session, "us-east-1")
        self.ec2 = Stubber(self.clients.ec2)
        self.quotas = Stubber(self.clients.quotas)

    def types(self, **vcpus: int) -> None:
        described = [
            {"InstanceType": name.replace("_", "."), "VCpuInfo": {"DefaultVCpus": count}}
            for name, count in vcpus.items()
        ]
        asked = {"InstanceTypes": [each["InstanceType"] for each in described]}
        self.ec2.add_response("describe_instance_types", {"InstanceTypes": described}, asked)

    def limit(self, vcpus: float) -> None:
        self.quotas.add_response("get_service_quota", {"Quota": {"Value": vcpus}}, G)

    def running(self, *instances: dict[str, Any], more: str | None = None) -> None:
        page = {"Reservations": [{"Instances": [each]} for each in instances]}
        self.ec2.add_response("describe_instances", page | ({"NextToken": more} if more else {}))

    def quota(self, instance_type: str = "g6.xlarge") -> VcpuQuota:
        return vcpu_quota(self.clients, instance_type)


@pytest.fixture
def account() -> Iterator[Account]:
    account = Account()
    with account.ec2, account.quotas:
        yield account
        account.ec2.assert_no_pending_responses()
        account.quotas.assert_no_pending_responses()


def instance(instance_type: str, **more: Any) -> dict[str, Any]:
    return {"InstanceType": instance_type, **more}


def test_all_pages_of_the_familys_on_demand_instances_count(account: Account) -> None:
    account.types(g6_xlarge=4)
    account.limit(64.0)
    account.running(instance("g6.xlarge"), instance("gr6.4xlarge"), more="2")
    account.running(
        instance("vt1.3xlarge"),
        instance("g5.xlarge", InstanceLifecycle="spot"),
        instance("g5.xlarge", InstanceLifecycle="capacity-block"),
        instance("p5.4xlarge"),
    )
    account.types(g6_xlarge=4, gr6_4xlarge=16, vt1_3xlarge=12)

    quota = account.quota()

    assert (quota.family, quota.code, quota.needed) == ("G and VT", "L-DB2E81BA", 4)
    assert (quota.limit, quota.in_use, quota.headroom, quota.suffices) == (64, 32, 32, True)
    assert quota.unknown_because == ""


def test_cpus_that_were_chosen_at_launch_count_as_chosen(account: Account) -> None:
    account.types(g6_xlarge=4)
    account.limit(8.0)
    account.running(instance("g6.4xlarge", CpuOptions={"CoreCount": 3, "ThreadsPerCore": 2}))

    quota = account.quota()

    assert (quota.in_use, quota.headroom, quota.suffices) == (6, 2, False)


def test_a_quota_that_was_never_applied_is_the_default(account: Account) -> None:
    account.types(g6_xlarge=4)
    account.quotas.add_client_error("get_service_quota", "NoSuchResourceException")
    account.quotas.add_response("get_aws_default_service_quota", {"Quota": {"Value": 0.0}}, G)
    account.running()

    quota = account.quota()

    assert (quota.limit, quota.in_use, quota.suffices) == (0, 0, False)


@pytest.mark.parametrize(
    ("code", "text", "words"),
    [
        (
            "AccessDeniedException",
            "no identity-based policy allows it",
            "optional statement allows servicequotas:",
        ),
        (
            "AccessDeniedException",
            "with an explicit deny in a service control policy",
            "service control policy of your AWS organization",
        ),
        ("TooManyRequestsException", "slow down", "TooManyRequestsException"),
        ("ServiceException", "sorry", "ServiceException"),
        ("IllegalArgumentException", "what?", "IllegalArgumentException"),
    ],
)
def test_a_limit_that_can_not_be_read_is_unknown_and_says_why(
    account: Account, code: str, text: str, words: str
) -> None:
    account.types(g6_xlarge=4)
    account.quotas.add_client_error("get_service_quota", code, text)

    quota = account.quota()

    assert (quota.needed, quota.limit, quota.in_use, quota.suffices) == (4, None, None, None)
    assert words in quota.unknown_because


def test_instances_that_can_not_be_counted_leave_the_quota_unknown(account: Account) -> None:
    account.types(g6_xlarge=4)
    account.limit(64.0)
    account.ec2.add_client_error("describe_instances", "UnauthorizedOperation", "No.")

    quota = account.quota()

    assert quota.suffices is None
    assert "ec2:DescribeInstances" in quota.unknown_because


def test_a_type_that_can_not_be_read_leaves_the_quota_unknown(account: Account) -> None:
    account.ec2.add_client_error("describe_instance_types", "UnauthorizedOperation", "No.")

    quota = account.quota()

    assert (quota.code, quota.needed, quota.suffices) == ("L-DB2E81BA", 0, None)
    assert "ec2:DescribeInstanceTypes" in quota.unknown_because


@pytest.mark.parametrize(
    ("instance_type", "name"),
    [
        ("g6.xlarge", "G and VT"),
        ("gr6f.4xlarge", "G and VT"),
        ("vt1.3xlarge", "G and VT"),
        ("p5.4xlarge", "P"),
        ("p6-b200.48xlarge", "P"),
    ],
)
def test_a_type_takes_from_the_quota_of_its_family(instance_type: str, name: str) -> None:
    family = family_of(instance_type)

    assert family is not None
    assert family.name == name


@pytest.mark.parametrize("instance_type", ["trn1.2xlarge", "m5.large", "", "pearl"])
def test_other_families_have_no_quota_that_is_known(account: Account, instance_type: str) -> None:
    assert family_of(instance_type) is None
    quota = account.quota(instance_type)
    assert (quota.code, quota.suffices) == ("", None)
    assert instance_type in quota.unknown_because
