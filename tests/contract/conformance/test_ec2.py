"""EC2 as AWS documents it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from tests.contract.conformance.patience import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorant_local.aws.images import SeededAccount
    from tensorant_local.aws.server import EmbeddedAws
    from tests.contract.conformance.conftest import Machines

USER_DATA = "#cloud-config\n# grüße\n"


class Bench:
    """Launches instances as the product does, and looks at them."""

    def __init__(self, aws: EmbeddedAws, account: SeededAccount) -> None:
        self.ec2 = aws.client("ec2")
        self.account = account

    def request(self, **changes: object) -> dict[str, Any]:
        tags = [{"Key": "tensorant:managed", "Value": "true"}]
        return {
            "ImageId": self.account.image_id,
            "InstanceType": "g6.xlarge",
            "MinCount": 1,
            "MaxCount": 1,
            "ClientToken": uuid4().hex,
            "UserData": USER_DATA,
            "InstanceInitiatedShutdownBehavior": "stop",
            "NetworkInterfaces": [
                {
                    "DeviceIndex": 0,
                    "SubnetId": self.account.subnet_id,
                    "Groups": [self.account.security_group_id],
                    "AssociatePublicIpAddress": False,
                    "DeleteOnTermination": True,
                }
            ],
            "BlockDeviceMappings": [
                {
                    "DeviceName": "/dev/sda1",
                    "Ebs": {
                        "VolumeType": "gp3",
                        "VolumeSize": 120,
                        "Encrypted": True,
                        "DeleteOnTermination": True,
                    },
                },
                {"DeviceName": "/dev/sdf", "NoDevice": ""},
            ],
            "MetadataOptions": {
                "HttpTokens": "required",
                "HttpEndpoint": "enabled",
                "HttpPutResponseHopLimit": 1,
            },
            "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume")],
        } | changes

    def launch(self, **changes: object) -> str:
        answer = self.ec2.run_instances(**self.request(**changes))
        return str(answer["Instances"][0]["InstanceId"])

    def running(self, **changes: object) -> str:
        instance_id = self.launch(**changes)
        self.until(instance_id, "running")
        return instance_id

    def shown(self, instance_id: str) -> dict[str, Any]:
        [reservation] = self.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"]
        [instance] = reservation["Instances"]
        return dict(instance)

    def until(self, instance_id: str, state: str) -> dict[str, Any]:
        return eventually(lambda: self.shown(instance_id), lambda seen: seen["State"]["Name"] == state)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(ClientError) as refused:
        call()
    return str(refused.value.response["Error"]["Code"])


@pytest.fixture(scope="module")
def bench(aws: EmbeddedAws, account: SeededAccount) -> Bench:
    return Bench(aws, account)


# -- launches ----------------------------------------------------------------------------------------------


def test_a_launch_asked_for_again_is_the_same_instance(bench: Bench) -> None:
    request = bench.request()

    first, again = (bench.ec2.run_instances(**request)["Instances"][0] for _ in range(2))

    assert first["InstanceId"] == again["InstanceId"]
    assert first["ClientToken"] == request["ClientToken"]


def test_a_launch_asked_for_at_once_is_one_instance(bench: Bench) -> None:
    request = bench.request()

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: bench.ec2.run_instances(**request), range(4)))

    assert len({answer["Instances"][0]["InstanceId"] for answer in answers}) == 1


@pytest.mark.parametrize("change", [{"InstanceType": "g5.xlarge"}, {"UserData": "#cloud-config\n"}])
def test_a_token_does_not_cover_other_parameters(bench: Bench, change: dict[str, object]) -> None:
    request = bench.request()
    bench.ec2.run_instances(**request)

    assert refusal(lambda: bench.ec2.run_instances(**request | change)) == "IdempotentParameterMismatch"


def test_the_token_of_a_terminated_instance_is_used_up(bench: Bench) -> None:
    request = bench.request()
    instance_id = bench.ec2.run_instances(**request)["Instances"][0]["InstanceId"]
    bench.ec2.terminate_instances(InstanceIds=[instance_id])
    bench.until(instance_id, "terminated")

    assert refusal(lambda: bench.ec2.run_instances(**request)) == "IdempotentInstanceTerminated"


def test_a_token_is_remembered_per_zone(bench: Bench, aws: EmbeddedAws, account: SeededAccount) -> None:
    subnet = bench.ec2.create_subnet(
        VpcId=account.vpc_id, CidrBlock="10.20.2.0/24", AvailabilityZone=f"{aws.region}b"
    )["Subnet"]
    request = bench.request()
    [nic] = request["NetworkInterfaces"]
    elsewhere = request | {"NetworkInterfaces": [nic | {"SubnetId": subnet["SubnetId"]}]}

    first, second = (bench.ec2.run_instances(**each)["Instances"][0] for each in (request, elsewhere))

    assert first["InstanceId"] != second["InstanceId"]


def test_launches_without_a_token_are_separate(bench: Bench) -> None:
    request = bench.request()
    del request["ClientToken"]

    first, second = (bench.ec2.run_instances(**request)["Instances"][0] for _ in range(2))

    assert first["InstanceId"] != second["InstanceId"]


def test_an_instance_is_found_by_its_token(bench: Bench) -> None:
    token = uuid4().hex
    instance_id = bench.launch(ClientToken=token)

    def found(value: str) -> list[str]:
        filters = [{"Name": "client-token", "Values": [value]}]
        reservations = bench.ec2.describe_instances(Filters=filters)["Reservations"]
        return [
            instance["InstanceId"] for reservation in reservations for instance in reservation["Instances"]
        ]

    assert found(token) == [instance_id]
    assert found("another") == []


@pytest.mark.parametrize(
    ("value", "fits"), [("g6.*", True), ("g*", True), ("g?.xlarge", True), ("g6", False), ("p*", False)]
)
def test_a_filter_may_have_wildcards(bench: Bench, value: str, *, fits: bool) -> None:
    instance_id = bench.launch()
    filters = [{"Name": "instance-type", "Values": [value]}]

    reservations = bench.ec2.describe_instances(Filters=filters)["Reservations"]

    found = {instance["InstanceId"] for each in reservations for instance in each["Instances"]}
    assert (instance_id in found) is fits


def test_a_dry_run_launches_nothing(bench: Bench) -> None:
    token = uuid4().hex

    assert refusal(lambda: bench.launch(DryRun=True, ClientToken=token)) == "DryRunOperation"
    filters = [{"Name": "client-token", "Values": [token]}]
    assert bench.ec2.describe_instances(Filters=filters)["Reservations"] == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"ImageId": "ami-0123456789abcdef0"}, "InvalidAMIID.NotFound"),
        ({"InstanceType": "g6.none"}, "InvalidParameterValue"),
        ({"KeyName": "unknown"}, "InvalidKeyPair.NotFound"),
        ({"UserData": "x" * 16385}, "InvalidParameterValue"),
        (
            {"BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 10}}]},
            "InvalidBlockDeviceMapping",
        ),
    ],
)
def test_an_impossible_launch_is_refused_and_leaves_nothing(
    bench: Bench, change: dict[str, object], code: str
) -> None:
    token = uuid4().hex

    assert refusal(lambda: bench.launch(ClientToken=token, **change)) == code
    bench.launch(ClientToken=token)


def test_a_group_of_another_network_is_refused(bench: Bench) -> None:
    vpc_id = bench.ec2.create_vpc(CidrBlock="10.99.0.0/16")["Vpc"]["VpcId"]
    group = bench.ec2.create_security_group(VpcId=vpc_id, GroupName="stranger", Description="elsewhere")
    [nic] = bench.request()["NetworkInterfaces"]

    assert (
        refusal(lambda: bench.launch(NetworkInterfaces=[nic | {"Groups": [group["GroupId"]]}]))
        == "InvalidParameter"
    )


def test_a_key_pair_is_optional_and_kept(bench: Bench, account: SeededAccount) -> None:
    assert "KeyName" not in bench.shown(bench.launch())
    assert bench.shown(bench.launch(KeyName=account.key_name))["KeyName"] == account.key_name


# -- what is shown -----------------------------------------------------------------------------------------


def test_a_launched_instance_is_shown_as_asked_for(bench: Bench, account: SeededAccount) -> None:
    shown = bench.shown(bench.launch())

    assert shown["SubnetId"] == account.subnet_id
    assert shown["VpcId"] == account.vpc_id
    assert shown["Placement"]["AvailabilityZone"] == account.zone
    assert [group["GroupId"] for group in shown["SecurityGroups"]] == [account.security_group_id]
    assert shown["MetadataOptions"]["HttpTokens"] == "required"
    assert shown["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
    assert {"Key": "tensorant:managed", "Value": "true"} in shown["Tags"]


def test_a_private_instance_has_no_public_address(bench: Bench) -> None:
    shown = bench.shown(bench.running())

    assert "PublicIpAddress" not in shown
    assert not shown.get("PublicDnsName")
    assert all("Association" not in interface for interface in shown["NetworkInterfaces"])
    assert shown["PrivateIpAddress"].startswith("10.20.1.")


def test_a_suppressed_disk_is_absent_and_the_root_has_the_size_asked_for(bench: Bench) -> None:
    [mapping] = bench.shown(bench.launch())["BlockDeviceMappings"]

    [volume] = bench.ec2.describe_volumes(VolumeIds=[mapping["Ebs"]["VolumeId"]])["Volumes"]

    assert mapping["DeviceName"] == "/dev/sda1"
    assert mapping["Ebs"]["DeleteOnTermination"] is True
    assert (volume["Size"], volume["VolumeType"], volume["Encrypted"]) == (120, "gp3", True)
    assert {"Key": "tensorant:managed", "Value": "true"} in volume["Tags"]


def test_a_disk_of_the_image_that_is_not_suppressed_comes_along(bench: Bench) -> None:
    root = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 80}}

    mappings = bench.shown(bench.launch(BlockDeviceMappings=[root]))["BlockDeviceMappings"]

    assert {mapping["DeviceName"] for mapping in mappings} == {"/dev/sda1", "/dev/sdf"}


# -- life --------------------------------------------------------------------------------------------------


@pytest.fixture
def states_of(
    aws: EmbeddedAws, deploy: Callable[[Any], str], calls: Callable[[str], list[Any]]
) -> Iterator[Callable[[str], list[str]]]:
    """The states of an instance, as its region's default bus tells them."""

    def listen(_event: Any) -> None:
        return None

    arn, events = deploy(listen), aws.client("events")
    pattern = {"source": ["aws.ec2"], "detail-type": ["EC2 Instance State-change Notification"]}
    events.put_rule(Name="instances", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="instances", Targets=[{"Id": "1", "Arn": arn}])

    def told(instance_id: str) -> list[str]:
        events_told = [event for event in calls(arn) if event["detail"]["instance-id"] == instance_id]
        expected = f"arn:aws:ec2:{aws.region}:{aws.account_id}:instance/{instance_id}"
        assert all(event["resources"] == [expected] for event in events_told)
        return sorted(event["detail"]["state"] for event in events_told)

    yield told
    events.remove_targets(Rule="instances", Ids=["1"])
    events.delete_rule(Name="instances")


def test_a_whole_life_is_told_as_events(bench: Bench, states_of: Callable[[str], list[str]]) -> None:
    instance_id = bench.running()
    bench.ec2.stop_instances(InstanceIds=[instance_id])
    bench.until(instance_id, "stopped")
    bench.ec2.start_instances(InstanceIds=[instance_id])
    bench.until(instance_id, "running")
    bench.ec2.terminate_instances(InstanceIds=[instance_id])
    bench.until(instance_id, "terminated")

    wanted = sorted(
        ["pending", "running", "stopping", "stopped", "pending", "running", "shutting-down", "terminated"]
    )
    eventually(lambda: states_of(instance_id), lambda seen: seen == wanted)


def test_a_launch_is_pending_first(bench: Bench) -> None:
    launched = bench.ec2.run_instances(**bench.request())["Instances"][0]

    assert launched["State"] == {"Code": 0, "Name": "pending"}
    assert launched["StateReason"]["Code"] == "pending"
    assert "StateReason" not in bench.until(launched["InstanceId"], "running")


def test_a_stop_takes_its_time_and_says_who_asked(bench: Bench) -> None:
    instance_id = bench.running()

    [change] = bench.ec2.stop_instances(InstanceIds=[instance_id])["StoppingInstances"]
    [repeated] = bench.ec2.stop_instances(InstanceIds=[instance_id])["StoppingInstances"]

    assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == ("running", "stopping")
    assert repeated["CurrentState"]["Name"] in {"stopping", "stopped"}
    stopped = bench.until(instance_id, "stopped")
    assert stopped["StateReason"]["Code"] == "Client.UserInitiatedShutdown"
    assert stopped["StateTransitionReason"].startswith("User initiated (")
    assert len(stopped["BlockDeviceMappings"]) == 1


def test_a_stopped_instance_starts_again(bench: Bench) -> None:
    instance_id = bench.running()
    bench.ec2.stop_instances(InstanceIds=[instance_id])
    bench.until(instance_id, "stopped")

    [change] = bench.ec2.start_instances(InstanceIds=[instance_id])["StartingInstances"]

    assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == ("stopped", "pending")
    assert bench.until(instance_id, "running")["StateTransitionReason"] == ""


def test_termination_may_be_asked_for_any_number_of_times(bench: Bench) -> None:
    instance_id = bench.running()

    [first] = bench.ec2.terminate_instances(InstanceIds=[instance_id])["TerminatingInstances"]
    bench.ec2.terminate_instances(InstanceIds=[instance_id])
    terminated = bench.until(instance_id, "terminated")
    [last] = bench.ec2.terminate_instances(InstanceIds=[instance_id])["TerminatingInstances"]

    assert first["CurrentState"]["Name"] == "shutting-down"
    assert (last["PreviousState"]["Name"], last["CurrentState"]["Name"]) == ("terminated", "terminated")
    assert terminated["StateReason"]["Code"] == "Client.UserInitiatedShutdown"
    assert terminated["BlockDeviceMappings"] == []
    assert {"Key": "tensorant:managed", "Value": "true"} in terminated["Tags"]


def test_termination_deletes_the_disk(bench: Bench) -> None:
    instance_id = bench.running()
    [mapping] = bench.shown(instance_id)["BlockDeviceMappings"]

    bench.ec2.terminate_instances(InstanceIds=[instance_id])
    bench.until(instance_id, "terminated")

    volume_id = mapping["Ebs"]["VolumeId"]
    assert refusal(lambda: bench.ec2.describe_volumes(VolumeIds=[volume_id])) == "InvalidVolume.NotFound"


def test_a_terminated_instance_neither_starts_nor_stops(bench: Bench) -> None:
    instance_id = bench.running()
    bench.ec2.terminate_instances(InstanceIds=[instance_id])
    bench.until(instance_id, "terminated")

    for call in (bench.ec2.start_instances, bench.ec2.stop_instances):
        assert refusal(partial(call, InstanceIds=[instance_id])) == "IncorrectInstanceState"


def test_an_unknown_instance_is_not_found(bench: Bench) -> None:
    unknown = ["i-0123456789abcdef0"]

    for call in (bench.ec2.terminate_instances, bench.ec2.stop_instances, bench.ec2.describe_instances):
        assert refusal(partial(call, InstanceIds=unknown)) == "InvalidInstanceID.NotFound"


# -- the machine behind it (of the embedded cloud only) ----------------------------------------------------


def test_the_machine_lives_with_its_instance(bench: Bench, machines: Machines) -> None:
    instance_id = bench.running()
    bench.ec2.stop_instances(InstanceIds=[instance_id])
    bench.until(instance_id, "stopped")
    bench.ec2.start_instances(InstanceIds=[instance_id])
    bench.until(instance_id, "running")
    bench.ec2.terminate_instances(InstanceIds=[instance_id])
    bench.until(instance_id, "terminated")

    user_data = USER_DATA.encode()
    assert machines.of(instance_id) == [
        ("boot", user_data, True),
        ("power off",),
        ("boot", user_data, False),
        ("destroy",),
    ]


@pytest.mark.parametrize(("behaviour", "end"), [("stop", "stopped"), ("terminate", "terminated")])
def test_an_instance_ends_as_told_when_its_system_shuts_down(
    bench: Bench, aws: EmbeddedAws, behaviour: str, end: str
) -> None:
    instance_id = bench.running(InstanceInitiatedShutdownBehavior=behaviour)

    aws.instance_powered_itself_off(instance_id)

    ended = bench.until(instance_id, end)
    assert ended["StateReason"]["Code"] == "Client.InstanceInitiatedShutdown"


# -- what can be launched ----------------------------------------------------------------------------------


def test_the_image_is_shown_as_it_was_registered(bench: Bench, account: SeededAccount) -> None:
    [image] = bench.ec2.describe_images(ImageIds=[account.image_id])["Images"]

    assert (image["State"], image["Architecture"], image["VirtualizationType"]) == (
        "available",
        "x86_64",
        "hvm",
    )
    assert (image["RootDeviceType"], image["RootDeviceName"]) == ("ebs", "/dev/sda1")
    assert image["EnaSupport"] is True
    assert (image["PlatformDetails"], image["UsageOperation"]) == ("Linux/UNIX", "RunInstances")
    assert "Platform" not in image
    assert not image.get("ProductCodes")
    sizes = {mapping["DeviceName"]: mapping["Ebs"]["VolumeSize"] for mapping in image["BlockDeviceMappings"]}
    assert sizes == {"/dev/sda1": 75, "/dev/sdf": 100}


def test_instance_types_with_one_gpu_are_offered_in_the_zone(bench: Bench, account: SeededAccount) -> None:
    filters = [
        {"Name": "instance-type", "Values": ["g6.*"]},
        {"Name": "processor-info.supported-architecture", "Values": ["x86_64"]},
    ]
    types = bench.ec2.describe_instance_types(Filters=filters)["InstanceTypes"]
    offered = bench.ec2.describe_instance_type_offerings(
        LocationType="availability-zone",
        Filters=[
            {"Name": "location", "Values": [account.zone]},
            {"Name": "instance-type", "Values": ["g6.xlarge"]},
        ],
    )["InstanceTypeOfferings"]

    [gpu] = next(kind for kind in types if kind["InstanceType"] == "g6.xlarge")["GpuInfo"]["Gpus"]
    assert (gpu["Name"], gpu["Manufacturer"], gpu["Count"]) == ("L4", "NVIDIA", 1)
    assert [offer["InstanceType"] for offer in offered] == ["g6.xlarge"]


def test_the_subnet_and_its_group_share_a_network(bench: Bench, account: SeededAccount) -> None:
    [subnet] = bench.ec2.describe_subnets(SubnetIds=[account.subnet_id])["Subnets"]
    [group] = bench.ec2.describe_security_groups(GroupIds=[account.security_group_id])["SecurityGroups"]

    assert subnet["VpcId"] == group["VpcId"] == account.vpc_id
    assert subnet["MapPublicIpOnLaunch"] is False
    assert subnet["AvailabilityZone"] == account.zone


def test_the_connections_user_belongs_to_the_account(aws: EmbeddedAws, account: SeededAccount) -> None:
    sts = aws.client(
        "sts", aws_access_key_id=account.access_key_id, aws_secret_access_key=account.secret_access_key
    )

    identity = sts.get_caller_identity()

    assert identity["Account"] == account.account_id
    assert identity["Arn"].endswith(f"user/{account.user_name}")
