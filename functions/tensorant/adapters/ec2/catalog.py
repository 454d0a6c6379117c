"""Which GPU types a region offers that the trainer can use: by rule, not by list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tensorant.adapters.ec2.gpus import is_older_than_ampere, memory_mib
from tensorant.domain.connections import GpuType

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

GPU_FAMILIES = ["g*", "p*"]
"""All families with NVIDIA GPUs, those to come included (EC2: instance type names). There is no filter for GPUs."""

WHOLE = 1.0
"""The partition size of a GPU that is not shared."""


def describe(client: EC2Client) -> tuple[list[GpuType], dict[str, str]]:
    """The usable types of the region, zones and prices still open, and the others with the reason."""
    usable: list[GpuType] = []
    excluded: dict[str, str] = {}
    pages = client.get_paginator("describe_instance_types").paginate(
        Filters=[{"Name": "instance-type", "Values": GPU_FAMILIES}]
    )
    for page in pages:
        for described in page["InstanceTypes"]:
            reason = exclusion(described)
            if reason is None:
                usable.append(_usable(described))
            else:
                excluded[described["InstanceType"]] = reason
    return sorted(usable, key=lambda each: each.instance_type), excluded


def exclusion(described: Mapping[str, Any]) -> str | None:
    """Why the trainer can't use a type; None if it can."""
    return _computer_fault(described) or _gpu_fault(described) or _sale_fault(described)


def _computer_fault(described: Mapping[str, Any]) -> str | None:
    if "x86_64" not in described.get("ProcessorInfo", {}).get("SupportedArchitectures", []):
        return "its processor is not x86_64"
    if described.get("BareMetal"):
        return "it is bare metal"
    if "hvm" not in described.get("SupportedVirtualizationTypes", ["hvm"]):
        return "it does not run HVM images"
    return None


def _gpu_fault(described: Mapping[str, Any]) -> str | None:
    """A fraction of a GPU reports Count 0, or a partition size below 1 (EC2 DescribeInstanceTypes, g6f)."""
    gpus = described.get("GpuInfo", {}).get("Gpus", [])
    if len(gpus) != 1 or str(gpus[0].get("Manufacturer", "")).upper() != "NVIDIA":
        return "it does not have exactly one kind of NVIDIA GPU"
    [gpu] = gpus
    count, name = gpu.get("Count", 0), gpu.get("Name", "")
    if count > 1:
        return f"it has {count} GPUs, and a run uses exactly one"
    if count != 1 or gpu.get("GpuPartitionSize", WHOLE) != WHOLE:
        return "it has only a fraction of a GPU"
    if is_older_than_ampere(name):
        return f"its {name} GPU is older than Ampere"
    return None


def _sale_fault(described: Mapping[str, Any]) -> str | None:
    classes = set(described.get("SupportedUsageClasses", []))
    if "on-demand" in classes:
        return None
    if classes == {"spot"}:
        return "it is sold as Spot only"
    if classes == {"capacity-block"}:
        return "it is sold in Capacity Blocks only"
    return "it is not sold on demand"


def _usable(described: Mapping[str, Any]) -> GpuType:
    [gpu] = described["GpuInfo"]["Gpus"]
    return GpuType(
        instance_type=described["InstanceType"],
        gpu=gpu["Name"],
        gpu_memory_mib=memory_mib(gpu["Name"], gpu["MemoryInfo"]["SizeInMiB"]),
        vcpus=described["VCpuInfo"]["DefaultVCpus"],
        memory_mib=described["MemoryInfo"]["SizeInMiB"],
    )


def zones_of(
    client: EC2Client, instance_types: Sequence[str], zones: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """For each of the types, in which of the zones it is offered. Offered is not available."""
    found: dict[str, set[str]] = {}
    if not instance_types:  # EC2 refuses a filter without values
        return {}
    pages = client.get_paginator("describe_instance_type_offerings").paginate(
        LocationType="availability-zone",
        Filters=[
            {"Name": "location", "Values": sorted(set(zones))},
            {"Name": "instance-type", "Values": list(instance_types)},
        ],
    )
    for page in pages:
        for offering in page["InstanceTypeOfferings"]:
            found.setdefault(offering["InstanceType"], set()).add(offering["Location"])
    return {name: tuple(sorted(where)) for name, where in found.items()}
