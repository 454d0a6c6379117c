"""Which GPU types the trainer can use, by what EC2 says of them."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant.adapters.ec2.catalog import exclusion, zones_of

NVIDIA_L4 = {"Name": "L4", "Manufacturer": "NVIDIA", "Count": 1, "MemoryInfo": {"SizeInMiB": 22888}}


def described(*gpus: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "InstanceType": "g6.xlarge",
        "GpuInfo": {"Gpus": list(gpus)},
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
        "SupportedUsageClasses": ["on-demand", "spot"],
        "SupportedVirtualizationTypes": ["hvm"],
        "BareMetal": False,
        **changes,
    }


def gpu(**changes: Any) -> dict[str, Any]:
    return {**NVIDIA_L4, **changes}


@pytest.mark.parametrize(
    "found", [gpu(), gpu(GpuPartitionSize=1.0), gpu(Name="H100"), gpu(Name="A name to come")]
)
def test_one_whole_recent_nvidia_gpu_is_usable(found: dict[str, Any]) -> None:
    assert exclusion(described(found)) is None


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        (described(gpu(Count=4)), "it has 4 GPUs, and a run uses exactly one"),
        (described(gpu(Count=8, Name="A100")), "it has 8 GPUs, and a run uses exactly one"),
        (
            described(gpu(Count=0, LogicalGpuCount=1, GpuPartitionSize=0.125)),
            "it has only a fraction of a GPU",
        ),
        (described(gpu(GpuPartitionSize=0.5)), "it has only a fraction of a GPU"),
        (described(gpu(Name="T4")), "its T4 GPU is older than Ampere"),
        (described(gpu(Name="V100")), "its V100 GPU is older than Ampere"),
        (
            described(gpu(), ProcessorInfo={"SupportedArchitectures": ["arm64"]}),
            "its processor is not x86_64",
        ),
        (described(gpu(), SupportedUsageClasses=["spot"]), "it is sold as Spot only"),
        (described(gpu(), SupportedUsageClasses=["capacity-block"]), "it is sold in Capacity Blocks only"),
        (described(gpu(), SupportedUsageClasses=["capacity-block", "spot"]), "it is not sold on demand"),
        (described(gpu(), SupportedUsageClasses=[]), "it is not sold on demand"),
        (described(gpu(), BareMetal=True), "it is bare metal"),
        (described(gpu(), SupportedVirtualizationTypes=["paravirtual"]), "it does not run HVM images"),
        (described(gpu(Manufacturer="AMD")), "it does not have exactly one kind of NVIDIA GPU"),
        (described(gpu(), gpu(Name="L40S")), "it does not have exactly one kind of NVIDIA GPU"),
        (described(), "it does not have exactly one kind of NVIDIA GPU"),
        ({"InstanceType": "m5.large"}, "its processor is not x86_64"),
    ],
)
def test_other_types_are_left_out_with_the_reason(type_: dict[str, Any], reason: str) -> None:
    assert exclusion(type_) == reason


class NoClient:
    """EC2 refuses a filter without values: nothing may be asked."""

    def get_paginator(self, operation: str) -> Any:
        raise AssertionError(operation)


def test_where_there_is_no_type_no_zone_is_asked_for() -> None:
    nobody: Any = NoClient()

    assert zones_of(nobody, [], ["us-east-1a"]) == {}
