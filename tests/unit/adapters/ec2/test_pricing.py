"""Prices of the AWS Price List, and the rows that must not be taken for one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tensorant.adapters.ec2.pricing import Prices
from tensorant.domain.errors import Permission, ProviderFault


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


def product(
    *prices: str, unit: str = "Hrs", currency: str = "USD", begins: str | None = None, **attributes: str
) -> dict[str, Any]:
    dimensions = {
        f"rate-{number}": {"unit": unit, "pricePerUnit": {currency: price}}
        for number, price in enumerate(prices)
    }
    term = {"priceDimensions": dimensions, **({"effectiveDate": begins} if begins else {})}
    return {"product": {"sku": "X", "attributes": attributes}, "terms": {"OnDemand": {"X.JRT": term}}}


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
        [[product("0.8048", begins="2999-01-01T00:00:00Z")]],
        [[product("0.8048", operation="RunInstances:0002")]],
        [[product("0.8048", licenseModel="Bring your own license")]],
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
        [[product("0.8048"), product("9", currency="CNY")]],
        [[product("0.8048", begins="2026-07-01T00:00:00Z"), product("9", begins="2999-01-01T00:00:00Z")]],
        [[product("0.8048", operation="RunInstances"), product("9", operation="RunInstances:0g00")]],
        [[product("0.8048", licenseModel="No License required")]],
    ],
)
def test_rows_of_nothing_repetitions_and_pages_do_not_hide_it(pages: list[Any]) -> None:
    assert price_of(*pages) == Decimal("0.8048")


def wanted(request: dict[str, Any], kind: str = "TERM_MATCH") -> dict[str, str]:
    return {each["Field"]: each["Value"] for each in request["Filters"] if each["Type"] == kind}


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


# -- many at once ------------------------------------------------------------------------------------------


def test_many_types_are_priced_by_one_question_and_each_by_its_own_rows() -> None:
    client: Any = PriceList(
        [
            product("0.8048", instanceType="g6.xlarge"),
            product("0.0000", instanceType="g6.xlarge"),
            product("1.0060", instanceType="g5.xlarge"),
            product("1.1", instanceType="g5.2xlarge"),
        ],
        [product("1.2", instanceType="g5.2xlarge"), product("7", instanceType="m5.large")],
    )

    prices = Prices(client, "us-east-1").all_compute_per_hour(
        ["g6.xlarge", "g5.xlarge", "g5.2xlarge", "p5.4xlarge"]
    )

    assert prices == {
        "g6.xlarge": Decimal("0.8048"),
        "g5.xlarge": Decimal("1.006"),
        "g5.2xlarge": None,
        "p5.4xlarge": None,
    }
    first, second = client.requests
    assert wanted(first, "ANY_OF") == {"instanceType": "g6.xlarge,g5.xlarge,g5.2xlarge,p5.4xlarge"}
    assert wanted(first)["capacitystatus"] == "Used"
    assert "NextToken" not in first
    assert second["NextToken"] == "1"


def test_no_type_is_no_question() -> None:
    client: Any = PriceList()

    assert Prices(client, "us-east-1").all_compute_per_hour([]) == {}
    assert client.requests == []


def test_names_that_do_not_fit_into_one_filter_are_asked_for_in_lots() -> None:
    client: Any = Repeating()
    names = [f"g6.{number}xlarge" for number in range(1000, 1100)]  # 13 characters each

    Prices(client, "us-east-1").all_compute_per_hour(names)

    lots = [wanted(request, "ANY_OF")["instanceType"] for request in client.requests]
    assert [len(lot.split(",")) for lot in lots] == [73, 27]  # 73 names and 72 commas: 1021 characters
    assert ",".join(lots).split(",") == names


class Repeating:
    """Answers nothing, to whatever is asked; the first requests fail with a code, if told."""

    def __init__(self, *codes: str) -> None:
        self.codes = list(codes)
        self.requests: list[dict[str, Any]] = []

    def get_products(self, **request: Any) -> dict[str, Any]:
        self.requests.append(dict(request))
        if self.codes:
            raise ClientError({"Error": {"Code": self.codes.pop(0), "Message": "no"}}, "GetProducts")
        return {"PriceList": [json.dumps(product("0.08", unit="GB-Mo"))]}


def test_an_expired_page_token_starts_the_list_over_once() -> None:
    once: Any = Repeating("ExpiredNextTokenException")
    twice: Any = Repeating("ExpiredNextTokenException", "ExpiredNextTokenException")

    assert Prices(once, "us-east-1").gp3_per_gib_month() == Decimal("0.08")
    with pytest.raises(ProviderFault):
        Prices(twice, "us-east-1").gp3_per_gib_month()
