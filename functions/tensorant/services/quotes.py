"""The quote of a run, from the prices of this moment."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from tensorant.domain.connections import Connection
from tensorant.domain.errors import Configuration, Price
from tensorant.domain.quotes import Quote, quote
from tensorant.domain.runs import UNPACKED_IMAGE_GIB, Draft
from tensorant.ports import Clock, Compute, CurrentPrice


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
    price = compute.prices([instance_type])[instance_type]
    return _quote(draft, instance_type, price, connection, clock.now())


def current_quotes(
    draft: Draft, connection: Connection, *, compute: Compute, clock: Clock
) -> dict[str, Quote | Price]:
    """The quotes of all types that the draft accepts, in its order, at one and the same moment.

    `Price` stands in the place of one whose price is unknown.
    """
    prices = compute.prices(draft.instance_types)
    now = clock.now()
    found: dict[str, Quote | Price] = {}
    for instance_type in draft.instance_types:
        try:
            found[instance_type] = _quote(draft, instance_type, prices[instance_type], connection, now)
        except Price as unknown:
            found[instance_type] = unknown
    return found


def first_within(quotes: Mapping[str, Quote | Price], limit: Decimal) -> Quote:
    """The quote of the type that is asked for first. Raises the first type's `Price` if none is affordable."""
    found = list(quotes.values())
    for each in found:
        if isinstance(each, Quote) and each.within(limit):
            return each
    raise found[0] if isinstance(found[0], Price) else found[0].above(limit)


def _quote(
    draft: Draft, instance_type: str, price: CurrentPrice, connection: Connection, now: datetime
) -> Quote:
    return quote(
        instance_type,
        compute_usd_per_hour=price.compute_usd_per_hour,
        disk_usd_per_gib_month=price.disk_usd_per_gib_month,
        disk_gib=disk_gib(draft, connection),
        priced_at=now,
    )
