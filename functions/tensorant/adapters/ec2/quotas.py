"""The account's vCPU quota of an instance family, where the connection may read it."""

from __future__ import annotations

from tensorant.adapters.ec2.clients import Clients
from tensorant.domain.quotas import VcpuQuota


def vcpu_quota(clients: Clients, instance_type: str) -> VcpuQuota:
    raise NotImplementedError
