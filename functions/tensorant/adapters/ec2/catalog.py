"""Which GPU types a region offers that the trainer can use: by rule, not by list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

GPU_FAMILIES = [
    "g4dn.*",
    "g5.*",
    "g6.*",
    "g6e.*",
    "g6f.*",
    "gr6.*",
    "gr6f.*",
    "g7.*",
    "g7e.*",
    "p4d.*",
    "p4de.*",
    "p5.*",
]

PRE_AMPERE = frozenset({"T4", "T4g", "V100", "K80", "M60", "K520", "Radeon Pro V520"})
"""GPU names, as EC2 reports them, whose compute capability is below 8.0 (the API does not report it)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usable:
    """A type that the trainer runs on, without its price."""

    instance_type: str
    gpu: str
    gpu_memory_mib: int
    vcpus: int
    memory_mib: int


def describe(client: EC2Client) -> tuple[list[Usable], dict[str, str]]:
    """The usable types of the region, and the others of the GPU families with the reason."""
    usable: list[Usable] = []
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
    """Why the trainer can't use a type; None if it can.

    A fractional GPU reports Count 0 or a partition size below 1 (EC2 DescribeInstanceTypes, g6f).
    """
    gpus = described.get("GpuInfo", {}).get("Gpus", [])
    if "x86_64" not in described.get("ProcessorInfo", {}).get("SupportedArchitectures", []):
        return "its processor is not x86_64"
    if "on-demand" not in described.get("SupportedUsageClasses", []):
        return "it is not sold on demand"
    if len(gpus) != 1 or gpus[0].get("Manufacturer") != "NVIDIA":
        return "it does not have exactly one kind of NVIDIA GPU"
    count = gpus[0].get("Count", 0)
    if count > 1:
        return f"it has {count} GPUs, and a run uses exactly one"
    if count != 1 or gpus[0].get("GpuPartitionSize", 1.0) != 1.0:
        return "it has only a fraction of a GPU"
    if gpus[0].get("Name") in PRE_AMPERE:
        return f"its {gpus[0]['Name']} GPU is older than Ampere"
    return None


def _usable(described: Mapping[str, Any]) -> Usable:
    gpu = described["GpuInfo"]["Gpus"][0]
    return Usable(
        instance_type=described["InstanceType"],
        gpu=gpu["Name"],
        gpu_memory_mib=gpu["MemoryInfo"]["SizeInMiB"],
        vcpus=described["VCpuInfo"]["DefaultVCpus"],
        memory_mib=described["MemoryInfo"]["SizeInMiB"],
    )


def zones_of(client: EC2Client, zones: list[str]) -> dict[str, tuple[str, ...]]:
    """For each instance type, in which of the given zones it is offered. Offered is not available."""
    found: dict[str, set[str]] = {}
    pages = client.get_paginator("describe_instance_type_offerings").paginate(
        LocationType="availability-zone", Filters=[{"Name": "location", "Values": zones}]
    )
    for page in pages:
        for offering in page["InstanceTypeOfferings"]:
            found.setdefault(offering["InstanceType"], set()).add(offering["Location"])
    return {name: tuple(sorted(where)) for name, where in found.items()}
