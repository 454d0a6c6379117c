"""The quote of a run, from the prices of this moment."""

from __future__ import annotations

from tensorant.domain.connections import Connection
from tensorant.domain.errors import Configuration
from tensorant.domain.quotes import Quote, quote
from tensorant.domain.runs import UNPACKED_IMAGE_GIB, Draft
from tensorant.ports import Clock, Compute


def disk_gib(draft: Draft, connection: Connection) -> int:
    """Root disk of the machine: the AMI's own, the unpacked training image and the workspace."""
    if connection.image is None:
        raise Configuration(
            "connection_not_checked",
            f"The connection {connection.name} has not passed its check.",
            mend="Check the connection and mend what it reports.",
            field="connection_id",
        )
    return connection.image.root_gib + UNPACKED_IMAGE_GIB + draft.workspace_gib


def current_quote(
    draft: Draft, instance_type: str, connection: Connection, *, compute: Compute, clock: Clock
) -> Quote:
    """Ask the provider for its present prices. Raises `Price` if one is unknown."""
    price = compute.price(instance_type)
    return quote(
        instance_type,
        compute_usd_per_hour=price.compute_usd_per_hour,
        disk_usd_per_gib_month=price.disk_usd_per_gib_month,
        disk_gib=disk_gib(draft, connection),
        priced_at=clock.now(),
    )
