"""A connection's check, its ways to prove who it is, and its quota, on EC2 as the embedded AWS plays it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from tensorant.adapters.ec2.roles import AssumedRoles
from tensorant.adapters.ec2.sessions import Ec2Computes
from tensorant.domain.connections import AwsSettings, CheckItem, CheckVerdict, CredentialKind, ImageFacts
from tensorant.domain.errors import Configuration, Permission
from tensorant.domain.machines import Candidate
from tensorant.ports import Compute, ComputeCheck
from tensorant_local.aws.images import Account, SeededAccount, seed_account
from tensorant_local.aws.server import EmbeddedAws
from tests.support.fakes import MemorySecrets
from tests.support.other_accounts import OtherAccount
from tests.support.worlds import AWS, aws_connection, machine

OK, WARNING, FAILED = CheckVerdict.OK, CheckVerdict.WARNING, CheckVerdict.FAILED
CUSTOMER = "444455556666"
EXTERNAL_ID = "a-number-that-we-made"
ABSENT = "0123456789abcdef0"


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws() as embedded, pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL", embedded.url)
        environment.setenv("AWS_ACCESS_KEY_ID", "embedded")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "embedded")
        yield embedded


@pytest.fixture(scope="module")
def account(aws: EmbeddedAws) -> SeededAccount:
    return seed_account(aws)


@pytest.fixture(scope="module")
def customer(aws: EmbeddedAws) -> OtherAccount:
    return OtherAccount(aws, CUSTOMER)


@pytest.fixture(scope="module")
def theirs(customer: OtherAccount) -> SeededAccount:
    return seed_account(customer, bucket="theirs")


def settings_of(account: SeededAccount, **more: Any) -> AwsSettings:
    settings = AwsSettings(
        region=account.region,
        image_id=account.image_id,
        subnet_ids=(account.subnet_id,),
        security_group_id=account.security_group_id,
        key_name=account.key_name,
    )
    return replace(settings, **more)


def with_keys(account: SeededAccount, settings: AwsSettings) -> Compute:
    keys = {"access_key_id": account.access_key_id, "secret_access_key": account.secret_access_key}
    return Ec2Computes(MemorySecrets({AWS: keys})).open(aws_connection(settings=settings))


def checked(account: SeededAccount, **settings: Any) -> ComputeCheck:
    wanted = settings_of(account, **settings)
    return with_keys(account, wanted).check(wanted)


@pytest.fixture(scope="module")
def good(account: SeededAccount) -> ComputeCheck:
    return checked(account)


def told(found: ComputeCheck, name: str) -> CheckItem:
    [item] = [each for each in found.items if each.name == name]
    return item


def failing(found: ComputeCheck) -> set[str]:
    return {each.name for each in found.items if each.verdict is FAILED}


# -- what a check looks at ---------------------------------------------------------------------------------


def test_a_good_connection_passes_its_check(account: SeededAccount, good: ComputeCheck) -> None:
    assert {each.name: each.verdict for each in good.items} == {
        "credentials": OK,
        "image": OK,
        "subnets": OK,
        "security_group": OK,
        "key_pair": OK,
        "gpu_types": OK,
        "prices": WARNING,  # the fixture prices one type of each family
    }
    assert good.account_id == account.account_id
    assert good.image == ImageFacts(root_device="/dev/sda1", root_gib=75, other_devices=("/dev/sdf",))
    assert good.disk_usd_per_gib_month == Decimal("0.08")


def test_the_catalog_holds_every_type_by_rule_with_its_zones_and_price(
    account: SeededAccount, good: ComputeCheck
) -> None:
    assert good.types is not None
    types = {each.instance_type: each for each in good.types}
    assert types["g6.xlarge"].usd_per_hour == Decimal("0.8048")
    assert (types["g6.xlarge"].gpu, types["g6.xlarge"].gpu_memory_mib) == ("L4", 24576)
    assert (types["g6.xlarge"].vcpus, types["g6.xlarge"].zones) == (4, (account.zone,))
    assert types["p5.4xlarge"].usd_per_hour == Decimal("6.88")
    assert types["g5.2xlarge"].usd_per_hour is None
    families = {name.split(".")[0] for name in types}
    assert families <= {"g5", "g6", "g6e", "gr6", "g7", "g7e", "p5"}
    assert {"g5", "g6", "g6e", "gr6"} <= families


@pytest.mark.parametrize(
    ("instance_type", "reason"),
    [
        ("g6.12xlarge", "4 GPUs"),
        ("p4d.24xlarge", "8 GPUs"),
        ("g4dn.xlarge", "T4 GPU is older than Ampere"),
        ("g5g.xlarge", "not x86_64"),
        ("g6f.xlarge", "a fraction of a GPU"),
    ],
)
def test_what_the_trainer_can_not_use_is_left_out_with_the_reason(
    good: ComputeCheck, instance_type: str, reason: str
) -> None:
    assert reason in good.excluded[instance_type]
    assert instance_type not in {each.instance_type for each in good.types or ()}


def test_a_check_tells_every_wrong_id_at_once(account: SeededAccount) -> None:
    found = checked(
        account,
        image_id=f"ami-{ABSENT}",
        subnet_ids=(f"subnet-{ABSENT}", account.subnet_id, "subnet-11111111"),
        security_group_id=f"sg-{ABSENT}",
        key_name="nobodys",
        instance_profile_arn=f"arn:aws:iam::{account.account_id}:instance-profile/nobodys",
    )

    assert failing(found) == {"image", "subnets", "security_group", "key_pair", "instance_profile"}
    assert all(each.mend for each in found.items if each.verdict is not OK)
    assert f"subnet-{ABSENT}" in told(found, "subnets").seen
    assert "subnet-11111111" in told(found, "subnets").seen
    assert account.subnet_id not in told(found, "subnets").seen
    assert found.account_id == account.account_id


def test_without_any_subnet_the_zones_are_unknown_and_the_catalog_is_left_alone(
    account: SeededAccount,
) -> None:
    found = checked(account, subnet_ids=(f"subnet-{ABSENT}",))

    assert failing(found) == {"subnets", "gpu_types"}
    assert told(found, "gpu_types").mend == "Mend the subnets first."
    assert found.types is None


@pytest.mark.parametrize(
    ("action", "items"),
    [
        ("DescribeImages", {"image"}),
        ("DescribeSubnets", {"subnets", "gpu_types"}),
        ("DescribeSecurityGroups", {"security_group"}),
        ("DescribeInstanceTypes", {"gpu_types"}),
        ("DescribeInstanceTypeOfferings", {"gpu_types"}),
    ],
)
def test_what_may_not_be_read_fails_its_item_and_hides_no_other(
    aws: EmbeddedAws, account: SeededAccount, action: str, items: set[str]
) -> None:
    aws.refuse_action(action, "UnauthorizedOperation")

    found = checked(account)

    aws.refuse_action(action, None)
    assert failing(found) == items
    refused = [each for each in found.items if f"ec2:{action}" in each.mend]
    assert len(refused) == 1
    assert "UnauthorizedOperation" in refused[0].seen
    assert len(found.items) == 7
    assert found.account_id == account.account_id


def test_prices_that_an_account_policy_blocks_are_told_with_the_region_to_open(
    aws: EmbeddedAws, account: SeededAccount
) -> None:
    aws.refuse_action("GetProducts", "AccessDeniedException")

    found = checked(account)

    aws.refuse_action("GetProducts", None)
    assert failing(found) == {"prices"}
    assert "pricing:GetProducts in us-east-1" in told(found, "prices").mend
    assert found.types
    assert {each.usd_per_hour for each in found.types} == {None}
    assert found.disk_usd_per_gib_month is None


def test_a_key_pair_that_the_policy_hides_is_no_fault(aws: EmbeddedAws, account: SeededAccount) -> None:
    aws.refuse_action("DescribeKeyPairs", "UnauthorizedOperation")

    item = told(checked(account), "key_pair")

    aws.refuse_action("DescribeKeyPairs", None)
    assert item.verdict is OK
    assert "the policy does not allow ec2:DescribeKeyPairs" in item.seen


# -- instance profiles -------------------------------------------------------------------------------------


def profile(account: Account, *, with_role: bool) -> str:
    iam, name = account.client("iam"), f"recovery-{uuid4().hex[:8]}"
    arn = iam.create_instance_profile(InstanceProfileName=name, Path="/ssm/")["InstanceProfile"]["Arn"]
    if with_role:
        iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
    return str(arn)


@pytest.mark.parametrize(("with_role", "verdict"), [(True, OK), (False, FAILED)])
def test_an_instance_profile_holds_a_role(
    aws: EmbeddedAws, account: SeededAccount, *, with_role: bool, verdict: CheckVerdict
) -> None:
    arn = profile(aws, with_role=with_role)

    assert told(checked(account, instance_profile_arn=arn), "instance_profile").verdict is verdict


def test_an_instance_profile_of_another_account_is_told_by_its_arn(account: SeededAccount) -> None:
    found = checked(account, instance_profile_arn="arn:aws:iam::999999999999:instance-profile/recovery")

    assert failing(found) == {"instance_profile"}
    assert account.account_id in told(found, "instance_profile").seen


# -- roles -------------------------------------------------------------------------------------------------


def role(customer: OtherAccount, us: str, condition: dict[str, Any] | None) -> str:
    statement: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{us}:root"},
        "Action": "sts:AssumeRole",
    }
    if condition:
        statement["Condition"] = condition
    made = customer.client("iam").create_role(
        RoleName=f"tensorant-{uuid4().hex[:8]}",
        AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
    )
    return str(made["Role"]["Arn"])


def guarded(customer: OtherAccount, aws: EmbeddedAws) -> str:
    return role(customer, aws.account_id, {"StringEquals": {"sts:ExternalId": EXTERNAL_ID}})


def with_role(
    theirs: SeededAccount, arn: str, roles: AssumedRoles | None = None
) -> tuple[Compute, AwsSettings]:
    settings = settings_of(theirs, credentials=CredentialKind.ROLE, role_arn=arn, external_id=EXTERNAL_ID)
    computes = Ec2Computes(MemorySecrets(), roles or AssumedRoles("dep-1"))
    return computes.open(aws_connection(settings=settings)), settings


def test_a_guarded_role_opens_the_customers_account(
    aws: EmbeddedAws, customer: OtherAccount, theirs: SeededAccount
) -> None:
    arn = guarded(customer, aws)
    compute, settings = with_role(theirs, arn)

    found = compute.check(settings)

    assert failing(found) == set()
    assert found.account_id == CUSTOMER
    assert told(found, "role").verdict is OK
    name = arn.split("/")[-1]
    seen = told(found, "credentials").seen
    assert seen == f"account {CUSTOMER}, arn:aws:sts::{CUSTOMER}:assumed-role/{name}/dep-1-conn-aws"


def test_a_machine_asked_for_with_a_role_is_the_customers(
    aws: EmbeddedAws, customer: OtherAccount, theirs: SeededAccount
) -> None:
    compute, _ = with_role(theirs, guarded(customer, aws))
    parameters = replace(
        machine().parameters,
        image_id=theirs.image_id,
        security_group_id=theirs.security_group_id,
        key_name=theirs.key_name,
    )
    wanted = machine(
        account_id=CUSTOMER,
        parameters=parameters,
        candidate=Candidate(instance_type="g6.xlarge", subnet_id=theirs.subnet_id),
    )

    asked = compute.ask(wanted, user_data="#cloud-config\n")

    [reservation] = customer.client("ec2").describe_instances(InstanceIds=[asked.instance_id])["Reservations"]
    assert reservation["OwnerId"] == CUSTOMER
    customer.client("ec2").terminate_instances(InstanceIds=[asked.instance_id])


def test_a_role_that_opens_without_the_external_id_is_refused(
    aws: EmbeddedAws, customer: OtherAccount, theirs: SeededAccount
) -> None:
    arn = role(customer, aws.account_id, None)
    compute, settings = with_role(theirs, arn)

    found = compute.check(settings)

    assert failing(found) == {"role"}
    assert told(found, "role").seen == f"{arn} can be assumed without the external id."
    assert [item.name for item in found.items] == ["credentials", "role"]  # whoever asks learns nothing more
    assert (found.image, found.types, found.subnet_zones) == (None, None, None)
    assert f"sts:ExternalId = {EXTERNAL_ID}" in told(found, "role").mend


def test_a_role_that_does_not_trust_us_says_whom_to_trust_and_how(
    aws: EmbeddedAws, customer: OtherAccount, theirs: SeededAccount
) -> None:
    compute, settings = with_role(theirs, role(customer, "999999999999", None))

    found = compute.check(settings)

    [item] = found.items
    assert (item.name, item.verdict) == ("credentials", FAILED)
    assert f"sts:AssumeRole to account {aws.account_id}" in item.mend
    assert f"sts:ExternalId = {EXTERNAL_ID}" in item.mend
    assert found.account_id is None


def test_every_call_with_a_role_that_was_shut_is_refused_as_permission(
    customer: OtherAccount, theirs: SeededAccount
) -> None:
    compute, _ = with_role(theirs, role(customer, "999999999999", None))

    with pytest.raises(Permission) as caught:
        compute.observe(machine(instance_id=f"i-{ABSENT}"))

    assert "trust policy" in caught.value.mend


def test_a_session_is_used_again_by_the_same_process(
    aws: EmbeddedAws, customer: OtherAccount, theirs: SeededAccount
) -> None:
    arn, roles = guarded(customer, aws), AssumedRoles("dep-1")
    first, _ = with_role(theirs, arn, roles)
    first.listed("dep-1")
    customer.client("iam").delete_role(RoleName=arn.split("/")[-1])

    second, _ = with_role(theirs, arn, roles)

    assert second.listed("dep-1") == []


def test_a_role_connection_names_its_role(account: SeededAccount) -> None:
    settings = settings_of(account, credentials=CredentialKind.ROLE)

    with pytest.raises(Configuration):
        Ec2Computes(MemorySecrets()).open(aws_connection(settings=settings))


# -- the deployment's own account --------------------------------------------------------------------------


def test_the_deployments_own_account_needs_no_secret(aws: EmbeddedAws, account: SeededAccount) -> None:
    settings = settings_of(account, credentials=CredentialKind.SAME_ACCOUNT)

    found = Ec2Computes(MemorySecrets()).open(aws_connection(settings=settings)).check(settings)

    assert failing(found) == set()
    assert found.account_id == aws.account_id


def test_in_its_own_account_a_missing_right_is_the_deployments(
    aws: EmbeddedAws, account: SeededAccount
) -> None:
    settings = settings_of(account, credentials=CredentialKind.SAME_ACCOUNT)
    aws.refuse_action("DescribeImages", "UnauthorizedOperation")

    found = Ec2Computes(MemorySecrets()).open(aws_connection(settings=settings)).check(settings)

    aws.refuse_action("DescribeImages", None)
    assert "sameAccountCompute=true" in told(found, "image").mend


# -- quotas ------------------------------------------------------------------------------------------------


def test_what_runs_in_the_family_is_taken_from_the_quota(
    aws: EmbeddedAws, customer: OtherAccount, theirs: SeededAccount
) -> None:
    ec2 = customer.client("ec2")
    made = [
        ec2.run_instances(
            ImageId=theirs.image_id,
            InstanceType=name,
            SubnetId=theirs.subnet_id,
            MinCount=1,
            MaxCount=1,
            **more,
        )["Instances"][0]["InstanceId"]
        for name, more in [
            ("g6.2xlarge", {}),
            ("g5.xlarge", {}),
            ("m5.large", {}),
            ("p5.4xlarge", {}),
            ("g6.xlarge", {"InstanceMarketOptions": {"MarketType": "spot"}}),
        ]
    ]

    quota = with_role(theirs, guarded(customer, aws))[0].quota("g6.4xlarge")

    ec2.terminate_instances(InstanceIds=made)
    assert (quota.needed, quota.limit, quota.in_use) == (16, 64, 8 + 4)
    assert (quota.headroom, quota.suffices, quota.unknown_because) == (52, True, "")


def test_a_quota_that_was_never_raised_is_aws_default(account: SeededAccount) -> None:
    quota = with_keys(account, settings_of(account)).quota("p5.4xlarge")

    assert (quota.family, quota.code) == ("P", "L-417A185B")
    assert (quota.needed, quota.limit, quota.in_use, quota.suffices) == (16, 0, 0, False)


@pytest.mark.parametrize("action", ["GetServiceQuota", "GetAWSDefaultServiceQuota"])
def test_a_quota_that_the_policy_hides_is_unknown_and_says_what_to_allow(
    aws: EmbeddedAws, account: SeededAccount, action: str
) -> None:
    aws.refuse_action(action, "AccessDeniedException")

    quota = with_keys(account, settings_of(account)).quota("p5.4xlarge")

    aws.refuse_action(action, None)
    assert (quota.needed, quota.limit, quota.in_use, quota.suffices) == (16, None, None, None)
    assert f"servicequotas:{action}" in quota.unknown_because
