"""The RunInstances request, whole: written down by hand."""

from __future__ import annotations

from dataclasses import replace

from tensorant.adapters.ec2.requests import run_instances
from tests.support.worlds import machine

TAGS = [
    {"Key": "tensorant:attempt", "Value": "1"},
    {"Key": "tensorant:deployment", "Value": "dep-1"},
    {"Key": "tensorant:managed", "Value": "true"},
    {"Key": "tensorant:run", "Value": "run-1"},
]


def test_the_request_is_complete() -> None:
    asked = machine()

    assert run_instances(asked, user_data="#cloud-config\n") == {
        "ClientToken": asked.client_token,
        "ImageId": "ami-0123456789abcdef0",
        "InstanceType": "g6.xlarge",
        "MinCount": 1,
        "MaxCount": 1,
        "UserData": "#cloud-config\n",
        "NetworkInterfaces": [
            {
                "DeviceIndex": 0,
                "SubnetId": "subnet-0000000a",
                "Groups": ["sg-0123456789abcdef0"],
                "AssociatePublicIpAddress": False,
                "DeleteOnTermination": True,
            }
        ],
        "BlockDeviceMappings": [
            {
                "DeviceName": "/dev/sda1",
                "Ebs": {
                    "VolumeType": "gp3",
                    "VolumeSize": 145,
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
            "InstanceMetadataTags": "disabled",
        },
        "InstanceInitiatedShutdownBehavior": "stop",
        "CapacityReservationSpecification": {"CapacityReservationPreference": "none"},
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": TAGS},
            {"ResourceType": "volume", "Tags": TAGS},
        ],
    }


def test_a_recovery_login_is_asked_for_only_where_the_connection_has_one() -> None:
    arn = "arn:aws:iam::111122223333:instance-profile/recovery"
    plain = machine()
    parameters = replace(plain.parameters, key_name="recovery", instance_profile_arn=arn)

    request = run_instances(replace(plain, parameters=parameters), user_data="")

    assert request["KeyName"] == "recovery"
    assert request["IamInstanceProfile"] == {"Arn": arn}
    assert not {"KeyName", "IamInstanceProfile"} & run_instances(plain, user_data="").keys()


def test_the_same_record_gives_the_same_request() -> None:
    tags = dict(reversed(machine().parameters.tags.items()))
    shuffled = machine(version=9, nonce="n", parameters=replace(machine().parameters, tags=tags))

    assert run_instances(shuffled, user_data="x") == run_instances(machine(), user_data="x")
