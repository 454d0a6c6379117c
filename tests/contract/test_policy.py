"""The policy and the adapter, held against each other: what it calls is allowed, and what is not allowed is told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import boto3
import botocore.session
import pytest

from tensorant.adapters.ec2.clients import Clients
from tensorant.adapters.ec2.compute import Ec2Compute
from tensorant.connector.policy import DISCOVERY, policy
from tensorant.domain.connections import AwsSettings, CheckVerdict
from tensorant.domain.errors import Permission
from tensorant.domain.machines import Call, Candidate, Machine, Seen
from tensorant_local.aws.images import SeededAccount, seed_account
from tensorant_local.aws.running import Delays
from tensorant_local.aws.server import EmbeddedAws
from tests.support.guarded import Guard
from tests.support.policy_evaluator import Account, Authorization, allows
from tests.support.providers import Provider
from tests.support.worlds import DEPLOYMENT, machine

LOADER = botocore.session.Session().get_component("data_loader")
"""Shared, since reading EC2's model takes longer than a test."""

G6 = "g6.xlarge"
QUOTA = {"GetServiceQuota": {"Quota": {"QuotaCode": "L-DB2E81BA", "Value": 64.0, "Unit": "None"}}}
TRUST = '{"Version": "2012-10-17", "Statement": []}'

OTHERS = {
    "image_id": "ami-0ffffffffffffffff",
    "security_group_id": "sg-0ffffffffffffffff",
    "key_name": "somebody-elses",
}


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    delays = Delays(pending=0.05, stopping=0.05, shutting_down=0.05)
    with EmbeddedAws(delays=delays) as embedded, pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL", embedded.url)
        yield embedded


@pytest.fixture(scope="module")
def account(aws: EmbeddedAws) -> SeededAccount:
    return seed_account(aws)


@pytest.fixture(scope="module")
def settings(aws: EmbeddedAws, account: SeededAccount) -> AwsSettings:
    """A connection with everything: a key pair, and an instance profile with a role in it."""
    iam = aws.client("iam")
    profile = iam.create_instance_profile(InstanceProfileName="training")["InstanceProfile"]
    iam.create_role(RoleName="training", AssumeRolePolicyDocument=TRUST)
    iam.add_role_to_instance_profile(InstanceProfileName="training", RoleName="training")
    return AwsSettings(
        region=account.region,
        image_id=account.image_id,
        subnet_ids=(account.subnet_id,),
        security_group_id=account.security_group_id,
        key_name=account.key_name,
        instance_profile_arn=profile["Arn"],
    )


@dataclass(frozen=True)
class Bench:
    """A provider behind a guard, and what its account holds."""

    provider: Provider
    guard: Guard
    settings: AwsSettings

    def check(self) -> Any:
        return self.provider.compute.check(self.settings)

    def run(self) -> None:
        """All that a run asks of EC2, from its connection's check to the end of its machine."""
        compute = self.provider.compute
        self.check()
        compute.prices([G6])
        compute.quota(G6)
        made = self.provider.running()
        compute.observe(replace(made, instance_id=None))
        compute.listed(DEPLOYMENT)
        compute.make(Call.STOP, made)
        self.provider.until(made, Seen.STOPPED)
        compute.make(Call.TERMINATE, made)
        self.provider.until(made, Seen.GONE)


@pytest.fixture
def bench(aws: EmbeddedAws, account: SeededAccount, settings: AwsSettings) -> Callable[..., Bench]:
    """A bench under a policy; by default the connection's own, optional statements and all."""

    def tags_of(instance_id: str) -> dict[str, str]:
        found = aws.client("ec2").describe_tags(Filters=[{"Name": "resource-id", "Values": [instance_id]}])
        return {tag["Key"]: tag["Value"] for tag in found["Tags"]}

    def guarded(document: dict[str, Any] | None = None) -> Bench:
        guard = Guard(
            document or whole(settings, account),
            Account(account.account_id, account.region, tags_of),
            answers=QUOTA,
        )
        inner = botocore.session.Session()
        inner.register_component("data_loader", LOADER)
        inner.set_credentials(account.access_key_id, account.secret_access_key)
        session = boto3.Session(botocore_session=inner, region_name=account.region)
        compute = Ec2Compute(Clients(guard.watch(session), account.region))
        template = like(settings, account)
        provider = Provider(compute, account.account_id, template, lambda: time.sleep(0.02))
        return Bench(provider, guard, settings)

    return guarded


def whole(settings: AwsSettings, account: SeededAccount) -> dict[str, Any]:
    return policy(settings, account.account_id, quota=True, checks=True)


def like(settings: AwsSettings, account: SeededAccount) -> Machine:
    parameters = replace(
        machine().parameters,
        image_id=settings.image_id,
        security_group_id=settings.security_group_id,
        key_name=settings.key_name,
        instance_profile_arn=settings.instance_profile_arn,
    )
    candidate = Candidate(instance_type=G6, subnet_id=account.subnet_id)
    return machine(candidate=candidate, parameters=parameters, account_id=account.account_id)


def named(statement: dict[str, Any]) -> str:
    """By its Sid; the guide gives none to the one that passes the role."""
    return str(statement.get("Sid", statement["Action"]))


def without(document: dict[str, Any], name: str) -> dict[str, Any]:
    left = [each for each in document["Statement"] if named(each) != name]
    assert len(left) == len(document["Statement"]) - 1
    return {**document, "Statement": left}


def with_only(document: dict[str, Any], sid: str, **changes: Any) -> dict[str, Any]:
    """One statement changed, the others as they were."""
    statements = [{**each, **changes} if named(each) == sid else each for each in document["Statement"]]
    return {**document, "Statement": statements}


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def started(aws: EmbeddedAws, token: str) -> list[Any]:
    answer = aws.client("ec2").describe_instances(Filters=[{"Name": "client-token", "Values": [token]}])
    return list(answer["Reservations"])


# -- what a run calls is allowed ---------------------------------------------------------------------------


def test_nothing_that_a_run_calls_is_refused(bench: Callable[..., Bench]) -> None:
    at = bench()

    at.run()

    assert at.guard.refused == []
    used = {each.action for each in at.guard.passed}
    assert {"ec2:RunInstances", "ec2:CreateTags", "iam:PassRole", "servicequotas:GetServiceQuota"} <= used


def test_a_check_only_reads(bench: Callable[..., Bench]) -> None:
    at = bench()

    at.check()

    names = {each.action.partition(":")[2] for each in at.guard.passed}
    assert "DescribeImages" in names
    assert all(name.startswith(("Describe", "Get")) for name in names)


def test_a_run_uses_all_that_the_policy_allows(
    bench: Callable[..., Bench], settings: AwsSettings, account: SeededAccount
) -> None:
    at = bench()
    at.run()

    def single(statement: dict[str, Any], action: str, resource: str) -> dict[str, Any]:
        return {"Statement": [{**statement, "Action": action, "Resource": resource}]}

    unused = {
        (action, resource)
        for statement in whole(settings, account)["Statement"]
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
        if not any(allows(single(statement, action, resource), each) for each in at.guard.passed)
    }
    restarted_by_people = (
        "ec2:StartInstances",
        f"arn:aws:ec2:{account.region}:{account.account_id}:instance/*",
    )
    where_no_quota_was_ever_applied = ("servicequotas:GetAWSDefaultServiceQuota", "*")
    assert unused == {restarted_by_people, where_no_quota_was_ever_applied}


def test_the_guides_policy_alone_is_enough_to_train(
    bench: Callable[..., Bench], settings: AwsSettings, account: SeededAccount
) -> None:
    at = bench(policy(settings, account.account_id))

    at.run()

    refused = {each.action for each in at.guard.refused}
    assert refused == {"ec2:DescribeKeyPairs", "iam:GetInstanceProfile", "servicequotas:GetServiceQuota"}
    assert not [item for item in at.check().items if item.verdict is CheckVerdict.FAILED]
    assert "servicequotas:GetServiceQuota" in (at.provider.compute.quota(G6).unknown_because or "")


# -- what is not allowed is told as a missing permission ---------------------------------------------------


def observe(at: Bench) -> None:
    at.provider.compute.observe(replace(at.provider.machine(), instance_id="i-0123456789abcdef0"))


def launch(at: Bench) -> None:
    at.provider.compute.ask(at.provider.machine(), user_data="")


def end_by(call: Call) -> Callable[[Bench], None]:
    def step(at: Bench) -> None:
        at.provider.compute.make(call, at.provider.asked())

    return step


STEPS: list[tuple[str, Callable[[Bench], Any], str]] = [
    ("DiscoverAndPrice", lambda at: at.provider.compute.prices([G6]), "pricing:GetProducts"),
    ("DiscoverAndPrice", lambda at: at.provider.compute.listed(DEPLOYMENT), "ec2:DescribeInstances"),
    ("DiscoverAndPrice", observe, "ec2:DescribeInstances"),
    ("ApprovedLaunchInputs", launch, "ec2:RunInstances"),
    ("CreateTaggedComputeAndDisks", launch, "ec2:RunInstances"),
    ("TagsAtLaunchOnly", launch, "ec2:CreateTags"),
    ("iam:PassRole", launch, "iam:PassRole"),
    ("ManageTaggedTrainingInstances", end_by(Call.STOP), "ec2:StopInstances"),
    ("ManageTaggedTrainingInstances", end_by(Call.TERMINATE), "ec2:TerminateInstances"),
]


@pytest.mark.parametrize(("missing", "step", "action"), STEPS)
def test_without_a_statement_the_step_that_needs_it_names_the_action(
    bench: Callable[..., Bench],
    settings: AwsSettings,
    account: SeededAccount,
    missing: str,
    step: Callable[[Bench], Any],
    action: str,
) -> None:
    at = bench(without(whole(settings, account), missing))

    with pytest.raises(Permission) as caught:
        step(at)

    assert action in caught.value.message
    assert caught.value.mend


def test_every_statement_that_a_run_needs_is_tried(settings: AwsSettings, account: SeededAccount) -> None:
    needed = {named(each) for each in policy(settings, account.account_id)["Statement"]}

    assert {missing for missing, _, _ in STEPS} == needed


@pytest.mark.parametrize("action", [each for each in DISCOVERY if each != "ec2:DescribeInstances"])
def test_a_check_that_may_not_look_names_the_action(
    bench: Callable[..., Bench], settings: AwsSettings, account: SeededAccount, action: str
) -> None:
    left = [each for each in DISCOVERY if each != action]

    found = bench(with_only(whole(settings, account), "DiscoverAndPrice", Action=left)).check()

    told = [f"{item.seen} {item.mend}" for item in found.items if item.verdict is not CheckVerdict.OK]
    assert any(action in text for text in told)


@pytest.mark.parametrize("kind", ["image", "subnet", "security-group", "key-pair", "network-interface"])
def test_a_launch_needs_every_input_of_the_policy(
    aws: EmbeddedAws, bench: Callable[..., Bench], settings: AwsSettings, account: SeededAccount, kind: str
) -> None:
    document = whole(settings, account)
    [statement] = [each for each in document["Statement"] if named(each) == "ApprovedLaunchInputs"]
    left = [each for each in statement["Resource"] if f":{kind}/" not in each]
    at = bench(with_only(document, "ApprovedLaunchInputs", Resource=left))
    wanted = at.provider.machine()

    with pytest.raises(Permission, match="ec2:RunInstances"):
        at.provider.compute.ask(wanted, user_data="")

    assert started(aws, wanted.client_token) == []


# -- what the policy keeps from us -------------------------------------------------------------------------


@pytest.mark.parametrize("setting", OTHERS)
def test_a_launch_with_what_was_not_approved_is_refused(bench: Callable[..., Bench], setting: str) -> None:
    at = bench()
    wanted = at.provider.machine()
    parameters = replace(wanted.parameters, **{setting: OTHERS[setting]})

    with pytest.raises(Permission, match=OTHERS[setting]):
        at.provider.compute.ask(replace(wanted, parameters=parameters), user_data="")


def test_a_launch_in_another_subnet_is_refused(bench: Callable[..., Bench]) -> None:
    at = bench()
    wanted = at.provider.machine()
    elsewhere = replace(wanted, candidate=replace(wanted.candidate, subnet_id="subnet-0ffffffffffffffff"))

    with pytest.raises(Permission, match="subnet-0ffffffffffffffff"):
        at.provider.compute.ask(elsewhere, user_data="")


@pytest.mark.parametrize("tags", [{}, {"tensorant:managed": "false"}, {"Name": "mine"}])
def test_a_launch_without_our_tag_is_refused(bench: Callable[..., Bench], tags: dict[str, str]) -> None:
    at = bench()
    wanted = at.provider.machine()

    with pytest.raises(Permission, match="instance/"):
        at.provider.compute.ask(
            replace(wanted, parameters=replace(wanted.parameters, tags=tags)), user_data=""
        )


def test_a_launch_whose_disk_is_not_tagged_is_refused(bench: Callable[..., Bench]) -> None:
    at = bench()
    request = {
        "ImageId": at.settings.image_id,
        "NetworkInterfaces": [
            {"SubnetId": at.settings.subnet_ids[0], "Groups": [at.settings.security_group_id]}
        ],
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": [{"Key": "tensorant:managed", "Value": "true"}]}
        ],
    }

    refused = [
        each
        for each in at.guard.account.wants("ec2", "RunInstances", request)
        if not allows(at.guard.policy, each)
    ]

    assert [(each.action, each.resource.rpartition(":")[2]) for each in refused] == [
        ("ec2:RunInstances", "volume/*")
    ]


def test_a_tag_may_not_be_made_later(bench: Callable[..., Bench]) -> None:
    at = bench()
    instance = f"arn:aws:ec2:{at.settings.region}:{at.provider.account_id}:instance/i-0123456789abcdef0"
    tag = {"aws:requesttag/tensorant:managed": "true"}

    later = Authorization("ec2:CreateTags", instance, tag)
    at_launch = Authorization("ec2:CreateTags", instance, {**tag, "ec2:createaction": "RunInstances"})

    assert not allows(at.guard.policy, later)
    assert allows(at.guard.policy, at_launch)


@pytest.mark.parametrize("call", [Call.STOP, Call.TERMINATE])
def test_an_instance_that_is_not_ours_is_left_alone(
    aws: EmbeddedAws, account: SeededAccount, bench: Callable[..., Bench], call: Call
) -> None:
    at = bench()
    theirs = aws.client("ec2").run_instances(
        ImageId=account.image_id, InstanceType=G6, MinCount=1, MaxCount=1, SubnetId=account.subnet_id
    )["Instances"][0]["InstanceId"]

    with pytest.raises(Permission, match=theirs):
        at.provider.compute.make(call, replace(at.provider.machine(), instance_id=theirs))
