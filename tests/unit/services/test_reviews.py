"""Reviewing a run before its launch.

Worked out by hand: two hours at $0.8207 are $1.6414; g5.xlarge costs 1.006 + 0.0159 = $1.0219, two hours of it
$2.0438.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tensorant.domain.connections import CheckItem, CheckVerdict, ConnectionStatus
from tensorant.domain.errors import Conflict, NotFound, Price
from tensorant.domain.quotas import VcpuQuota
from tensorant.services.reviews import Problem, Review, Reviews
from tests.support.fakes.compute import UNKNOWN_QUOTA
from tests.support.worlds import (
    G5,
    G6,
    MEMBER,
    ORG,
    RUN,
    STRANGER,
    World,
    aws_connection,
    later,
    s3_connection,
)


@pytest.fixture
def reviews(world: World) -> Reviews:
    return Reviews(world.store, world.computes, world.clock)


def reviewed(world: World, reviews: Reviews, **draft_changes: Any) -> Review:
    world.drafted(**draft_changes)
    return reviews.review(MEMBER, ORG, RUN)


def told(review: Review) -> list[tuple[str, str | None, bool]]:
    return [(each.code, each.field, each.blocking) for each in review.problems]


def quota(in_use: int) -> VcpuQuota:
    return VcpuQuota(family="G and VT", code="L-DB2E81BA", needed=4, limit=8, in_use=in_use)


# -- quotes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "within"), [("0.8207", True), ("0.8206", False)])
def test_a_review_quotes_the_price_of_this_moment(
    world: World, reviews: Reviews, *, limit: str, within: bool
) -> None:
    world.clock.forward(minutes=5)

    review = reviewed(world, reviews, price_limit_usd_per_hour=Decimal(limit))

    assert review.quote.usd_per_hour == Decimal("0.8207")
    assert review.quote.disk_gib == 65 + 30 + 50
    assert review.quote.priced_at == review.at == later(minutes=5)
    assert review.within_limit is within


def test_a_review_asks_the_provider_no_more_than_it_takes(world: World, reviews: Reviews) -> None:
    world.compute.prices_per_hour[G5] = Decimal("1.006")

    reviewed(world, reviews, instance_types=(G6, G5))

    assert world.compute.calls == [("prices", "g6.xlarge g5.xlarge"), ("quota", G6)]


def test_every_acceptable_type_is_quoted_in_the_persons_order(world: World, reviews: Reviews) -> None:
    world.compute.prices_per_hour[G5] = Decimal("1.006")

    review = reviewed(world, reviews, instance_types=(G5, G6), price_limit_usd_per_hour=Decimal("0.9"))

    assert [(each.instance_type, review.within(each)) for each in review.quotes] == [(G5, False), (G6, True)]
    # g5.xlarge is passed over at the launch
    assert (review.quote.instance_type, review.within_limit) == (G6, True)
    assert told(review) == [("price_above_limit", "price_limit_usd_per_hour", False)]


@pytest.mark.parametrize(
    ("limit", "most"),
    [("2", "2.0438"), ("0.9", "1.6414"), ("0.5", "1.6414")],
    ids=["both", "g6 alone", "none: the first"],
)
def test_the_most_that_it_may_cost_counts_every_type_that_may_be_asked_for(
    world: World, reviews: Reviews, limit: str, most: str
) -> None:
    world.compute.prices_per_hour[G5] = Decimal("1.006")

    review = reviewed(
        world,
        reviews,
        instance_types=(G6, G5),
        price_limit_usd_per_hour=Decimal(limit),
        time_limit_minutes=120,
    )

    assert review.most_usd == Decimal(most)


def test_an_unknown_price_is_no_quote(world: World, reviews: Reviews) -> None:
    world.compute.prices_per_hour.clear()

    with pytest.raises(Price) as caught:
        reviewed(world, reviews)
    assert caught.value.code == "price_unknown"


def test_a_type_without_a_price_is_told_and_passed_over(world: World, reviews: Reviews) -> None:
    review = reviewed(world, reviews, instance_types=(G5, G6))

    assert [each.instance_type for each in review.quotes] == [G6]
    assert told(review) == [("price_unknown", "instance_types[0]", False)]


# -- what stands against it --------------------------------------------------------------------------------


def test_nothing_stands_against_a_run_that_may_be_launched(world: World, reviews: Reviews) -> None:
    assert reviewed(world, reviews).problems == ()


def test_a_price_above_the_limit_blocks_if_no_type_is_left(world: World, reviews: Reviews) -> None:
    review = reviewed(world, reviews, price_limit_usd_per_hour=Decimal("0.5"))

    assert told(review) == [("price_above_limit", "price_limit_usd_per_hour", True)]
    assert review.problems[0].mend


@pytest.mark.parametrize(
    ("expire", "problems"),
    [
        ({"minutes": 149}, ["credentials_expire_early", "credentials_expire_soon"]),
        ({"minutes": 150}, ["credentials_expire_soon"]),
        ({"days": 3}, []),
    ],
)
def test_credentials_that_end_before_the_release_block(
    world: World, reviews: Reviews, expire: dict[str, float], problems: list[str]
) -> None:
    world.store.commit(aws_connection(version=1, credentials_expire_at=later(**expire)))

    review = reviewed(world, reviews)  # two hours, and half an hour for the release

    assert [each.code for each in review.problems] == problems
    assert [each.code for each in review.problems if each.blocking] == [
        each for each in problems if each == "credentials_expire_early"
    ]


@pytest.mark.parametrize(
    ("expire", "problems"),
    [
        ({"minutes": 149}, [("credentials_expire_early", "project_id", True)]),
        ({"minutes": 150}, []),
    ],
)
def test_the_storages_credentials_that_end_before_block_too(
    world: World, reviews: Reviews, expire: dict[str, float], problems: list[tuple[str, str, bool]]
) -> None:
    world.store.commit(s3_connection(version=1, credentials_expire_at=later(**expire)))

    assert told(reviewed(world, reviews)) == problems


@pytest.mark.parametrize(("in_use", "enough"), [(4, True), (5, False)])
def test_a_quota_that_is_used_up_is_a_warning(
    world: World, reviews: Reviews, *, in_use: int, enough: bool
) -> None:
    world.compute.quota_result = quota(in_use)

    review = reviewed(world, reviews)

    assert review.quota.headroom == 8 - in_use
    assert told(review) == ([] if enough else [("quota_insufficient", "instance_types", False)])


def test_a_quota_that_is_not_known_stands_against_nothing(world: World, reviews: Reviews) -> None:
    review = reviewed(world, reviews)

    assert (review.quota, review.problems) == (UNKNOWN_QUOTA, ())


def test_what_the_last_check_warned_of_is_told(world: World, reviews: Reviews) -> None:
    old = CheckItem(
        name="image", verdict=CheckVerdict.WARNING, seen="It is deprecated.", mend="Take another."
    )
    fine = CheckItem(name="subnets", verdict=CheckVerdict.OK, seen="2 subnets")
    world.store.commit(aws_connection(version=1, checks=(fine, old)))

    assert reviewed(world, reviews).problems == (
        Problem(
            code="connection_image",
            message="It is deprecated.",
            mend="Take another.",
            field="connection_id",
            blocking=False,
        ),
    )


def test_storage_that_is_not_ready_blocks(world: World, reviews: Reviews) -> None:
    world.store.commit(s3_connection(version=1, status=ConnectionStatus.FAILED))

    assert told(reviewed(world, reviews)) == [("connection_not_ready", "project_id", True)]


def test_without_a_connection_that_is_ready_there_is_no_review(world: World, reviews: Reviews) -> None:
    world.store.commit(aws_connection(version=1, status=ConnectionStatus.FAILED))

    with pytest.raises(Conflict):
        reviewed(world, reviews)
    assert world.compute.calls == []


def test_a_stranger_reviews_nothing(world: World, reviews: Reviews) -> None:
    world.drafted()

    with pytest.raises(NotFound):
        reviews.review(STRANGER, ORG, RUN)
