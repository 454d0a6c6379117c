"""Compute: one suite for EC2 and for the little provider that stands in for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tensorant.adapters.ec2.sessions import Ec2Computes
from tensorant.domain.connections import AwsSettings, Connection
from tensorant.domain.errors import Configuration, Credentials, ProviderFault
from tensorant.domain.machines import Call, Candidate, Machine, Observation, Seen
from tensorant.ports import Compute, Listed
from tensorant_local.aws.images import SeededAccount, seed_account
from tensorant_local.aws.running import Delays
from tensorant_local.aws.server import EmbeddedAws
from tests.support.fakes import FakeCompute, MemorySecrets
from tests.support.providers import Provider
from tests.support.worlds import AWS, aws_connection, machine, s3_connection


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
def connection(account: SeededAccount) -> Connection:
    settings = AwsSettings(
        region=account.region,
        image_id=account.image_id,
        subnet_ids=(account.subnet_id,),
        security_group_id=account.security_group_id,
        key_name=account.key_name,
    )
    return aws_connection(settings=settings, account_id=account.account_id)


def opened(account: SeededAccount, connection: Connection, **secret: str) -> Compute:
    keys = {"access_key_id": account.access_key_id, "secret_access_key": account.secret_access_key}
    return Ec2Computes(MemorySecrets({AWS: {**keys, **secret}})).open(connection)


@pytest.fixture(scope="module")
def ec2(account: SeededAccount, connection: Connection) -> Provider:
    parameters = replace(
        machine().parameters,
        image_id=account.image_id,
        security_group_id=account.security_group_id,
        key_name=account.key_name,
    )
    candidate = Candidate(instance_type="g6.xlarge", subnet_id=account.subnet_id)
    return Provider(
        compute=opened(account, connection),
        account_id=account.account_id,
        template=machine(candidate=candidate, parameters=parameters, account_id=account.account_id),
        let_time_pass=lambda: time.sleep(0.02),
    )


@pytest.fixture(params=["fake", "ec2"])
def provider(request: pytest.FixtureRequest) -> Provider:
    if request.param == "ec2":
        found: Provider = request.getfixturevalue("ec2")
        return found
    fake = FakeCompute()
    return Provider(fake, fake.account_id, machine(), fake.let_time_pass)


# -- asking ------------------------------------------------------------------------------------------------


def test_a_machine_is_made_and_starts_running(provider: Provider) -> None:
    seen = provider.compute.ask(provider.machine(), user_data="#cloud-config\n")

    assert seen.state in {Seen.PENDING, Seen.RUNNING}
    assert seen.instance_id is not None
    assert seen.instance_id.startswith("i-")
    assert seen.started_at is not None
    assert seen.started_at.utcoffset() is not None


def test_the_same_record_twice_makes_one_machine(provider: Provider) -> None:
    wanted = provider.machine()

    first, second = provider.asked(wanted), provider.asked(wanted)

    assert first.instance_id == second.instance_id


def test_nothing_is_made_in_another_account_than_the_records(provider: Provider) -> None:
    wanted = replace(provider.machine(), account_id="999988887777")

    with pytest.raises(Credentials):
        provider.compute.ask(wanted, user_data="#cloud-config\n")

    seen = provider.compute.observe(wanted)
    assert (seen.state, seen.account_id) == (Seen.MISSING, provider.account_id)


def test_another_attempt_or_candidate_makes_another_machine(provider: Provider) -> None:
    wanted = provider.machine()
    other = replace(wanted.candidate, instance_type="g5.xlarge")

    made = {
        provider.asked(each).instance_id
        for each in (wanted, replace(wanted, attempt=2), replace(wanted, candidate=other))
    }

    assert len(made) == 3


# -- observing ---------------------------------------------------------------------------------------------


def test_a_machine_is_seen_by_its_id_and_by_its_token(provider: Provider) -> None:
    asked = provider.asked()

    by_id = provider.until(asked, Seen.RUNNING)
    by_token = provider.compute.observe(replace(asked, instance_id=None))

    assert by_id.instance_id == by_token.instance_id == asked.instance_id
    assert by_id.started_at == by_token.started_at


@pytest.mark.parametrize("instance_id", ["i-0123456789abcdef0", None])
def test_a_machine_that_nobody_knows_is_missing_and_says_who_looked(
    provider: Provider, instance_id: str | None
) -> None:
    seen = provider.compute.observe(replace(provider.machine(), instance_id=instance_id))

    assert seen == Observation(state=Seen.MISSING, account_id=provider.account_id)


# -- stopping and terminating ------------------------------------------------------------------------------


def test_a_running_machine_is_stopped_and_stays(provider: Provider) -> None:
    running = provider.running()

    provider.compute.make(Call.STOP, running)

    assert provider.compute.observe(running).state in {Seen.STOPPING, Seen.STOPPED}
    assert provider.until(running, Seen.STOPPED).instance_id == running.instance_id


def test_a_stop_may_be_repeated(provider: Provider) -> None:
    running = provider.running()

    for _ in range(2):
        provider.compute.make(Call.STOP, running)
    provider.until(running, Seen.STOPPED)
    provider.compute.make(Call.STOP, running)

    assert provider.compute.observe(running).state is Seen.STOPPED


@pytest.mark.parametrize("state", [Seen.PENDING, Seen.RUNNING, Seen.STOPPED])
def test_a_machine_is_terminated_from_every_state(provider: Provider, state: Seen) -> None:
    machine_ = provider.asked() if state is Seen.PENDING else provider.running()
    if state is Seen.STOPPED:
        provider.compute.make(Call.STOP, machine_)
        provider.until(machine_, Seen.STOPPED)

    for _ in range(2):
        provider.compute.make(Call.TERMINATE, machine_)
    provider.until(machine_, Seen.GONE)
    provider.compute.make(Call.TERMINATE, machine_)

    assert provider.compute.observe(machine_).state is Seen.GONE


@pytest.mark.parametrize("call", Call)
@pytest.mark.parametrize("instance_id", ["i-0123456789abcdef0", None])
def test_a_call_to_a_machine_that_nobody_knows_says_nothing(
    provider: Provider, call: Call, instance_id: str | None
) -> None:
    provider.compute.make(call, replace(provider.machine(), instance_id=instance_id))


@pytest.mark.parametrize("state", [Seen.PENDING, Seen.GONE])
def test_a_machine_that_can_not_be_stopped_is_left_to_observe(provider: Provider, state: Seen) -> None:
    machine_ = provider.asked() if state is Seen.PENDING else provider.running()
    if state is Seen.GONE:
        provider.compute.make(Call.TERMINATE, machine_)
        provider.until(machine_, Seen.GONE)

    provider.compute.make(Call.STOP, machine_)

    if state is Seen.GONE:
        assert provider.compute.observe(machine_).state is Seen.GONE


# -- listing -----------------------------------------------------------------------------------------------


def listed(provider: Provider, of: Machine, deployment_id: str) -> Listed | None:
    found = provider.compute.listed(deployment_id)
    return next((each for each in found if each.observation.instance_id == of.instance_id), None)


def test_a_deployments_machines_are_listed_with_what_their_tags_say(provider: Provider) -> None:
    wanted = provider.machine()
    tags = {**wanted.parameters.tags, "tensorant:run": wanted.run_id, "tensorant:attempt": "3"}
    asked = provider.asked(replace(wanted, parameters=replace(wanted.parameters, tags=tags)))
    seen = provider.until(asked, Seen.RUNNING)

    assert listed(provider, asked, "dep-1") == Listed(
        observation=seen, client_token=wanted.client_token, run_id=wanted.run_id, attempt=3
    )
    assert listed(provider, asked, "dep-2") is None


@pytest.mark.parametrize(("attempt", "read"), [("one", None), ("", None), ("12", 12)])
def test_a_tag_that_somebody_changed_says_nothing(provider: Provider, attempt: str, read: int | None) -> None:
    wanted = provider.machine()
    tags = {"tensorant:deployment": "dep-1", "tensorant:attempt": attempt}
    asked = provider.asked(replace(wanted, parameters=replace(wanted.parameters, tags=tags)))

    found = listed(provider, asked, "dep-1")

    assert found is not None
    assert (found.run_id, found.attempt) == (None, read)


def test_a_machine_that_is_gone_is_not_listed_and_one_that_is_stopped_is(provider: Provider) -> None:
    gone, stopped = provider.running(), provider.running()
    provider.compute.make(Call.TERMINATE, gone)
    provider.compute.make(Call.STOP, stopped)
    provider.until(gone, Seen.GONE)
    provider.until(stopped, Seen.STOPPED)

    assert listed(provider, gone, "dep-1") is None
    found = listed(provider, stopped, "dep-1")
    assert found is not None
    assert found.observation.state is Seen.STOPPED


def test_a_machine_that_no_record_knows_is_stopped_by_its_id(provider: Provider) -> None:
    running = provider.running()

    provider.compute.stop(running.instance_id or "")

    assert provider.until(running, Seen.STOPPED).instance_id == running.instance_id


# -- prices ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [["g6.xlarge"], ["g6.xlarge", "g6.48xlarge"]])
def test_a_price_is_that_of_the_list(provider: Provider, asked: list[str]) -> None:
    prices = provider.compute.prices(asked)

    assert list(prices) == asked
    assert prices["g6.xlarge"].compute_usd_per_hour == Decimal("0.8048")
    assert prices["g6.xlarge"].disk_usd_per_gib_month == Decimal("0.08")


@pytest.mark.parametrize("asked", [["g6.48xlarge"], ["g6.xlarge", "g6.48xlarge"]])
def test_a_type_without_a_price_has_none(provider: Provider, asked: list[str]) -> None:
    assert provider.compute.prices(asked)["g6.48xlarge"].compute_usd_per_hour is None


# -- quotas ------------------------------------------------------------------------------------------------


def test_a_quota_names_its_family_and_what_a_machine_takes(provider: Provider) -> None:
    quota = provider.compute.quota("g6.xlarge")

    assert (quota.family, quota.code, quota.needed) == ("G and VT", "L-DB2E81BA", 4)
    assert (quota.headroom is None) == bool(quota.unknown_because)


# -- EC2 alone ---------------------------------------------------------------------------------------------


def instance_of(aws: EmbeddedAws, made: Machine) -> Any:
    answer = aws.client("ec2").describe_instances(InstanceIds=[made.instance_id])
    return answer["Reservations"][0]["Instances"][0]


def test_the_instance_is_as_the_guide_says(aws: EmbeddedAws, ec2: Provider, account: SeededAccount) -> None:
    instance = instance_of(aws, ec2.running())

    assert instance["InstanceType"] == "g6.xlarge"
    assert instance["SubnetId"] == account.subnet_id
    assert [group["GroupId"] for group in instance["SecurityGroups"]] == [account.security_group_id]
    assert instance["KeyName"] == account.key_name
    assert not instance.get("PublicIpAddress")
    assert instance["MetadataOptions"]["HttpTokens"] == "required"
    assert instance["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
    assert {tag["Key"] for tag in instance["Tags"]} == set(ec2.template.parameters.tags)
    assert "InstanceLifecycle" not in instance


def test_the_root_disk_is_encrypted_tagged_and_alone(aws: EmbeddedAws, ec2: Provider) -> None:
    instance = instance_of(aws, ec2.running())

    (mapping,) = instance["BlockDeviceMappings"]
    (volume,) = aws.client("ec2").describe_volumes(VolumeIds=[mapping["Ebs"]["VolumeId"]])["Volumes"]
    assert mapping["DeviceName"] == "/dev/sda1"
    assert mapping["Ebs"]["DeleteOnTermination"]
    assert (volume["Size"], volume["VolumeType"], volume["Encrypted"]) == (145, "gp3", True)
    assert {"Key": "tensorant:managed", "Value": "true"} in volume["Tags"]


def test_a_question_in_other_words_finds_the_machine_that_was_made(ec2: Provider) -> None:
    wanted = ec2.machine()
    made = ec2.asked(wanted)

    again = ec2.compute.ask(wanted, user_data="#cloud-config\n# in other words\n")

    assert again.instance_id == made.instance_id


def test_a_question_whose_machine_is_gone_is_told_so(ec2: Provider) -> None:
    wanted = ec2.machine()
    made = ec2.asked(wanted)
    ec2.compute.make(Call.TERMINATE, made)
    ec2.until(made, Seen.GONE)

    again = ec2.compute.ask(wanted, user_data="#cloud-config\n")

    assert (again.instance_id, again.state) == (made.instance_id, Seen.GONE)


@pytest.mark.parametrize(
    ("parameters", "candidate", "code"),
    [
        ({"image_id": "ami-0123456789abcdef0"}, {}, "InvalidAMIID.NotFound"),
        ({}, {"subnet_id": "subnet-0123456789abcdef0"}, "InvalidSubnetID.NotFound"),
        ({"security_group_id": "sg-0123456789abcdef0"}, {}, "InvalidGroup.NotFound"),
        ({"disk_gib": 8}, {}, "InvalidBlockDeviceMapping"),
    ],
)
def test_a_wrong_setting_is_a_definite_no(
    ec2: Provider, parameters: dict[str, Any], candidate: dict[str, Any], code: str
) -> None:
    wanted = ec2.machine()
    wrong = replace(
        wanted,
        parameters=replace(wanted.parameters, **parameters),
        candidate=replace(wanted.candidate, **candidate),
    )

    with pytest.raises(Configuration) as caught:
        ec2.compute.ask(wrong, user_data="")

    assert caught.value.code == code
    assert ec2.compute.observe(wrong).state is Seen.MISSING


def test_only_aws_is_opened_as_ec2() -> None:
    with pytest.raises(Configuration):
        Ec2Computes(MemorySecrets()).open(s3_connection())


def test_credentials_that_are_not_stored_are_told_when_opening() -> None:
    with pytest.raises(Credentials):
        Ec2Computes(MemorySecrets()).open(aws_connection())


def test_no_answer_leaves_it_open_whether_a_machine_was_made(
    account: SeededAccount, connection: Connection
) -> None:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        with pytest.raises(ProviderFault):
            opened(account, connection).ask(machine(), user_data="")
