"""The RunInstances request of a machine, complete: what is not in it is not left to an account's defaults."""

from __future__ import annotations

from typing import Any

from tensorant.domain.machines import Machine


def run_instances(machine: Machine, *, user_data: str) -> dict[str, Any]:
    """Keyword arguments for `run_instances`; the same record gives the same request.

    Source of the traps: EC2 RunInstances reference (a network interface excludes top-level subnet and
    groups; `NoDevice` takes an empty string; tags of instance and volume only, or the policy refuses).
    """
    parameters = machine.parameters
    request: dict[str, Any] = {
        "ClientToken": machine.client_token,
        "ImageId": parameters.image_id,
        "InstanceType": machine.candidate.instance_type,
        "MinCount": 1,
        "MaxCount": 1,
        "UserData": user_data,
        "NetworkInterfaces": [
            {
                "DeviceIndex": 0,
                "SubnetId": machine.candidate.subnet_id,
                "Groups": [parameters.security_group_id],
                "AssociatePublicIpAddress": False,
                "DeleteOnTermination": True,
            }
        ],
        "BlockDeviceMappings": _devices(machine),
        "MetadataOptions": {
            "HttpTokens": "required",
            "HttpEndpoint": "enabled",
            "HttpPutResponseHopLimit": 1,
            "InstanceMetadataTags": "disabled",
        },
        "InstanceInitiatedShutdownBehavior": "stop",
        "CapacityReservationSpecification": {"CapacityReservationPreference": "none"},
        "TagSpecifications": [
            {
                "ResourceType": kind,
                "Tags": [{"Key": k, "Value": v} for k, v in sorted(parameters.tags.items())],
            }
            for kind in ("instance", "volume")
        ],
    }
    if parameters.key_name:
        request["KeyName"] = parameters.key_name
    if parameters.instance_profile_arn:
        request["IamInstanceProfile"] = {"Arn": parameters.instance_profile_arn}
    return request


def _devices(machine: Machine) -> list[dict[str, Any]]:
    """An encrypted gp3 root, and nothing of what else the AMI maps."""
    root = {
        "DeviceName": machine.parameters.root_device,
        "Ebs": {
            "VolumeType": "gp3",
            "VolumeSize": machine.parameters.disk_gib,
            "Encrypted": True,
            "DeleteOnTermination": True,
        },
    }
    return [root, *({"DeviceName": name, "NoDevice": ""} for name in machine.parameters.other_devices)]
