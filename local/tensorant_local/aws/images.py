"""The account that a run meets: an image, a network, a key pair, a user and a bucket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

IMAGE_NAME = "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) 20260701"
ROOT_GIGABYTES = 75
"""Of the image's root disk; a launch may ask for more, not for less."""


class Account(Protocol):
    """An account of the embedded AWS, by its clients."""

    @property
    def account_id(self) -> str: ...
    @property
    def region(self) -> str: ...
    def client(self, service: str, **options: Any) -> Any: ...


@dataclass(frozen=True)
class SeededAccount:
    """What `seed_account` made, by the ids a user would enter."""

    account_id: str
    region: str
    image_id: str
    vpc_id: str
    subnet_id: str
    zone: str
    security_group_id: str
    key_name: str
    user_name: str
    access_key_id: str
    secret_access_key: str
    bucket: str


def seed_account(
    aws: Account, *, key_name: str = "recovery", bucket: str = "tensorant-demo"
) -> SeededAccount:
    """Prepare the account as the AWS guide asks its reader to."""
    ec2, iam = aws.client("ec2"), aws.client("iam")
    zone = f"{aws.region}a"
    vpc_id = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc_id, CidrBlock="10.20.1.0/24", AvailabilityZone=zone)["Subnet"]
    group = ec2.create_security_group(VpcId=vpc_id, GroupName="training", Description="Outbound only")
    ec2.create_key_pair(KeyName=key_name)
    user_name = "tensorant-connection"
    iam.create_user(UserName=user_name)
    access_key = iam.create_access_key(UserName=user_name)["AccessKey"]
    aws.client("s3").create_bucket(Bucket=bucket)
    return SeededAccount(
        account_id=aws.account_id,
        region=aws.region,
        image_id=_register_image(ec2),
        vpc_id=vpc_id,
        subnet_id=subnet["SubnetId"],
        zone=zone,
        security_group_id=group["GroupId"],
        key_name=key_name,
        user_name=user_name,
        access_key_id=access_key["AccessKeyId"],
        secret_access_key=access_key["SecretAccessKey"],
        bucket=bucket,
    )


def _register_image(ec2: Any) -> str:
    """A GPU image with a root disk and a second one, which a launch has to suppress."""
    image_id: str = ec2.register_image(
        Name=IMAGE_NAME,
        Architecture="x86_64",
        VirtualizationType="hvm",
        EnaSupport=True,
        BootMode="uefi-preferred",
        RootDeviceName="/dev/sda1",
        BlockDeviceMappings=[
            {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": ROOT_GIGABYTES, "VolumeType": "gp3"}},
            {
                "DeviceName": "/dev/sdf",
                "Ebs": {"VolumeSize": 100, "VolumeType": "gp3", "DeleteOnTermination": True},
            },
        ],
    )["ImageId"]
    return image_id
