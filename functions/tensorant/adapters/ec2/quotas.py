"""The account's vCPU quota of an instance family, where the connection may read it.

Source: Service Quotas API; EC2 user guide, "On-Demand Instance quotas": what counts is the vCPUs of the
family's on-demand instances that are pending or running. Open Capacity Reservations count too, and the
guide's policy does not let them be read: AWS has the last word at launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tensorant.adapters.ec2.clients import Clients
from tensorant.adapters.ec2.errors import code_of, translated
from tensorant.adapters.ec2.families import QuotaFamily, family_of
from tensorant.domain.errors import Permission, ProviderError
from tensorant.domain.quotas import VcpuQuota

TYPES_IN_ONE_QUESTION = 100
"""At most (EC2 DescribeInstanceTypes, InstanceTypes)."""

OPTIONAL = (
    "The connection's policy does not let quotas be read: its optional statement allows "
    "servicequotas:GetServiceQuota and servicequotas:GetAWSDefaultServiceQuota."
)


def vcpu_quota(clients: Clients, instance_type: str) -> VcpuQuota:
    """Limit and use of the quota that a machine of the type takes from.

    Never raises: a quota that can't be read says why, and a launch is tried all the same. `needed` is 0
    where even the type can't be read.
    """
    family = family_of(instance_type)
    if family is None:
        why = f"The quota of {instance_type}'s family is not known to Tensorant."
        return VcpuQuota(family="", code="", needed=0, unknown_because=why)
    reading = _Reading(clients, family)
    try:
        needed = reading.vcpus([instance_type])[instance_type]
    except ProviderError as error:
        return VcpuQuota(family=family.name, code=family.code, needed=0, unknown_because=_why(error))
    try:
        limit, in_use = reading.limit(), reading.in_use()
    except ProviderError as error:
        return VcpuQuota(family=family.name, code=family.code, needed=needed, unknown_because=_why(error))
    return VcpuQuota(family=family.name, code=family.code, needed=needed, limit=limit, in_use=in_use)


def _why(error: ProviderError) -> str:
    """Who follows the guide to the letter has no right to quotas: that is no fault."""
    if isinstance(error, Permission) and error.mend.startswith("Allow servicequotas:"):
        return OPTIONAL
    return f"{error.message} {error.mend}"


@dataclass(frozen=True)
class _Reading:
    clients: Clients
    family: QuotaFamily

    def limit(self) -> int:
        """The applied quota; AWS's default where none was ever applied."""
        asked = {"ServiceCode": "ec2", "QuotaCode": self.family.code}
        try:
            try:
                answer = self.clients.quotas.get_service_quota(**asked)
            except ClientError as error:
                if code_of(error) != "NoSuchResourceException":
                    raise
                answer = self.clients.quotas.get_aws_default_service_quota(**asked)
        except (ClientError, BotoCoreError) as error:
            raise translated(error, doing="read the vCPU quota") from error
        return int(answer["Quota"]["Value"])

    def in_use(self) -> int:
        """What counts now, in vCPUs."""
        try:
            counted = list(self._counted())
        except (ClientError, BotoCoreError) as error:
            raise translated(error, doing="count the running instances") from error
        by_default = self.vcpus(
            sorted({each["InstanceType"] for each in counted if _own_vcpus(each) is None})
        )
        return sum(_own_vcpus(each) or by_default[each["InstanceType"]] for each in counted)

    def vcpus(self, instance_types: Sequence[str]) -> dict[str, int]:
        """Of each type, as it comes."""
        found: dict[str, int] = {}
        try:
            for start in range(0, len(instance_types), TYPES_IN_ONE_QUESTION):
                some: Any = instance_types[start : start + TYPES_IN_ONE_QUESTION]
                answer = self.clients.ec2.describe_instance_types(InstanceTypes=some)
                found |= {
                    each["InstanceType"]: each["VCpuInfo"]["DefaultVCpus"] for each in answer["InstanceTypes"]
                }
        except (ClientError, BotoCoreError) as error:
            raise translated(error, doing="read the instance types' vCPUs") from error
        return found

    def _counted(self) -> Iterator[Mapping[str, Any]]:
        filters: Any = [
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
            {"Name": "instance-type", "Values": sorted(f"{letters}*" for letters in self.family.letters)},
        ]
        pages = self.clients.ec2.get_paginator("describe_instances").paginate(Filters=filters)
        for page in pages:
            for reservation in page["Reservations"]:
                for instance in reservation["Instances"]:
                    on_demand = "InstanceLifecycle" not in instance
                    if on_demand and family_of(instance["InstanceType"]) == self.family:
                        yield instance


def _own_vcpus(instance: Mapping[str, Any]) -> int | None:
    """Chosen at launch (CpuOptions); None where the answer does not tell."""
    options = instance.get("CpuOptions", {})
    if not options.get("CoreCount"):
        return None
    return int(options["CoreCount"]) * int(options.get("ThreadsPerCore") or 1)
