"""A connection's check: looks at everything that a launch will need, and starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tensorant.adapters.ec2 import catalog, checks
from tensorant.adapters.ec2.clients import Clients
from tensorant.adapters.ec2.errors import code_of, translated
from tensorant.domain.connections import AwsSettings, CheckVerdict, GpuType
from tensorant.domain.errors import DOUBTFUL, ProviderError
from tensorant.ports import ComputeCheck


def check(clients: Clients, settings: AwsSettings) -> ComputeCheck:
    """What was seen, item by item. Raises only what leaves the answer open."""
    try:
        return _check(clients, settings)
    except (ClientError, BotoCoreError) as error:
        failed = translated(error, doing="check the connection")
    except ProviderError as error:
        failed = error
    if isinstance(failed, DOUBTFUL):
        raise failed
    item = checks.item("aws", CheckVerdict.FAILED, failed.message, failed.mend)
    return ComputeCheck(items=(item,), account_id=None, image=None)


def _check(clients: Clients, settings: AwsSettings) -> ComputeCheck:
    account_id, ec2 = clients.account(), clients.ec2
    items = [checks.item("credentials", CheckVerdict.OK, f"account {account_id}")]
    images = _found_or_nothing(lambda: ec2.describe_images(ImageIds=[settings.image_id])["Images"])
    image_item, image = checks.image(images, settings)
    subnets = _found_or_nothing(lambda: ec2.describe_subnets(SubnetIds=list(settings.subnet_ids))["Subnets"])
    groups = _found_or_nothing(
        lambda: ec2.describe_security_groups(GroupIds=[settings.security_group_id])["SecurityGroups"]
    )
    items += [
        image_item,
        checks.subnets(subnets, settings),
        checks.security_group(groups, subnets, settings),
    ]
    types, excluded = _catalog(clients, [each["AvailabilityZone"] for each in subnets])
    priced = sum(1 for each in types if each.usd_per_hour is not None)
    items.append(checks.catalog(len(types), priced))
    return ComputeCheck(
        items=tuple(items),
        account_id=account_id,
        image=image,
        types=types,
        excluded=excluded,
        disk_usd_per_gib_month=clients.prices.gp3_per_gib_month(),
    )


def _catalog(clients: Clients, zones: list[str]) -> tuple[tuple[GpuType, ...], dict[str, str]]:
    usable, excluded = catalog.describe(clients.ec2)
    offered = catalog.zones_of(clients.ec2, zones) if zones else {}
    types = tuple(
        GpuType(
            instance_type=each.instance_type,
            gpu=each.gpu,
            gpu_memory_mib=each.gpu_memory_mib,
            vcpus=each.vcpus,
            memory_mib=each.memory_mib,
            zones=offered[each.instance_type],
            usd_per_hour=clients.prices.compute_per_hour(each.instance_type),
        )
        for each in usable
        if each.instance_type in offered
    )
    excluded |= {
        each.instance_type: "the subnets' zones do not offer it"
        for each in usable
        if each.instance_type not in offered
    }
    return types, excluded


def _found_or_nothing(read: Callable[[], Iterable[Any]]) -> list[Mapping[str, Any]]:
    """What was asked for by id; nothing if AWS does not know it."""
    try:
        return list(read())
    except ClientError as error:
        code = code_of(error) or ""
        if ".NotFound" in code or ".Malformed" in code:
            return []
        raise
