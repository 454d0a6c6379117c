"""What a connection lets a run ask for, in order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tensorant.domain.connections import Catalog
from tensorant.domain.offers import offered
from tests.support.worlds import (
    FIRST_SUBNET,
    G5,
    G6,
    SECOND_SUBNET,
    aws_connection,
    catalog,
    gpu_type,
    s3_connection,
)

ZONES = {FIRST_SUBNET: "us-east-1a", SECOND_SUBNET: "us-east-1b"}


def order(known: Catalog | None, **connection_changes: Any) -> list[tuple[str, str]]:
    found = offered((G5, G6), aws_connection(**connection_changes), known)
    return [(each.instance_type, each.subnet_id) for each in found]


def in_zones(**zones: tuple[str, ...]) -> Catalog:
    return catalog(
        types=(
            replace(gpu_type(G5, "1.006"), zones=zones["g5"]),
            replace(gpu_type(G6, "0.8048"), zones=zones["g6"]),
        )
    )


def test_the_persons_types_come_first_then_the_connections_subnets() -> None:
    everywhere = ("us-east-1a", "us-east-1b")

    assert order(in_zones(g5=everywhere, g6=everywhere), subnet_zones=ZONES) == [
        (G5, FIRST_SUBNET),
        (G5, SECOND_SUBNET),
        (G6, FIRST_SUBNET),
        (G6, SECOND_SUBNET),
    ]


def test_a_subnet_in_a_zone_that_does_not_offer_the_type_is_left_out() -> None:
    assert order(in_zones(g5=("us-east-1b",), g6=("us-east-1a",)), subnet_zones=ZONES) == [
        (G5, SECOND_SUBNET),
        (G6, FIRST_SUBNET),
    ]


def test_what_the_check_did_not_see_is_tried() -> None:
    only_b = in_zones(g5=("us-east-1b",), g6=())

    assert len(order(only_b)) == 4  # no subnet's zone is known
    assert (G6, FIRST_SUBNET) in order(only_b, subnet_zones=ZONES)  # the type's zones are not
    assert len(order(None, subnet_zones=ZONES)) == 4


def test_storage_offers_no_machines() -> None:
    assert list(offered((G6,), s3_connection(), None)) == []
