"""Prices of the AWS Price List, and the rows that must not be taken for one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tensorant.adapters.ec2.pricing import Prices
from tensorant.domain.errors import Permission


class PriceList:
    """A pricing client that answers its pages, one a request."""

    def __init__(self, *pages: Sequence[dict[str, Any]]) -> None:
        self.pages = pages
        self.requests: list[dict[str, Any]] = []

    def get_products(self, **request: Any) -> dict[str, Any]:
        number = len(self.requests)
        self.requests.append(dict(request))
        more = {"NextToken": str(number + 1)} if number + 1 < len(self.pages) else {}
        return {"PriceList": [json.dumps(each) for each in self.pages[number]], **more}


def product(*prices: str, unit: str = "Hrs", currency: str = "USD") -> dict[str, Any]:
    dimensions = {
        f"rate-{number}": {"unit": unit, "pricePerUnit": {currency: price}}
        for number, price in enumerate(prices)
    }
    return {"product": {"sku": "X"}, "terms": {"OnDemand": {"X.JRT": {"priceDimensions": dimensions}}}}


def price_of(*pages: Sequence[dict[str, Any]]) -> Decimal | None:
    client: Any = PriceList(*pages)
    return Prices(client, "us-east-1").compute_per_hour("g6.xlarge")


def test_one_positive_price_is_the_price() -> None:
    assert price_of([product("0.8048000000")]) == Decimal("0.8048")


@pytest.mark.parametrize(
    "pages",
    [
        [[]],
        [[product("0.0000000000")]],
        [[product("0.8048"), product("0.9048")]],
        [[product("0.8048", "0.9048")]],
        [[product("0.8048")], [product("0.9048")]],
        [[product("0.8048", unit="Quantity")]],
        [[product("5.8048", currency="CNY")]],
        [[{"product": {}, "terms": {"Reserved": {}}}]],
        [[{}]],
    ],
)
def test_no_price_no_single_price_and_a_price_of_nothing_are_no_price(pages: list[Any]) -> None:
    assert price_of(*pages) is None


@pytest.mark.parametrize(
    "pages",
    [
        [[product("0.8048"), product("0.0000000000")]],
        [[product("0.8048000000"), product("0.8048")]],
        [[], [product("0.8048")]],
        [[product("0.8048"), product("9", unit="Quantity")]],
    ],
)
def test_rows_of_nothing_repetitions_and_pages_do_not_hide_it(pages: list[Any]) -> None:
    assert price_of(*pages) == Decimal("0.8048")


def wanted(request: dict[str, Any]) -> dict[str, str]:
    assert all(each["Type"] == "TERM_MATCH" for each in request["Filters"])
    return {each["Field"]: each["Value"] for each in request["Filters"]}


def test_every_attribute_that_tells_prices_apart_is_asked_for() -> None:
    one: Any = PriceList([])
    other: Any = PriceList([])

    Prices(one, "eu-west-1").compute_per_hour("g6.xlarge")
    Prices(other, "eu-west-1").gp3_per_gib_month()

    (compute,), (disk,) = one.requests, other.requests
    assert compute["ServiceCode"] == "AmazonEC2"
    assert wanted(compute) == {
        "regionCode": "eu-west-1",
        "productFamily": "Compute Instance",
        "instanceType": "g6.xlarge",
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
    }
    assert wanted(disk) == {"regionCode": "eu-west-1", "productFamily": "Storage", "volumeApiName": "gp3"}


def test_a_refusal_is_translated() -> None:
    class Refusing:
        def get_products(self, **_request: Any) -> dict[str, Any]:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetProducts")

    client: Any = Refusing()
    with pytest.raises(Permission):
        Prices(client, "us-east-1").gp3_per_gib_month()
