"""The Pricing API as AWS documents it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from tensorant_local.aws.server import EmbeddedAws

ONE_PRICE = {
    "regionCode": "us-east-1",
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
    "productFamily": "Compute Instance",
}


@pytest.fixture(scope="module")
def pricing(aws: EmbeddedAws) -> Any:
    return aws.client("pricing")


def products(pricing: Any, **wanted: str) -> list[dict[str, Any]]:
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
    answer = pricing.get_products(
        ServiceCode="AmazonEC2", FormatVersion="aws_v1", Filters=filters, MaxResults=100
    )
    return [json.loads(entry) for entry in answer["PriceList"]]


def prices(product: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (dimension["unit"], dimension["pricePerUnit"]["USD"])
        for term in product["terms"]["OnDemand"].values()
        for dimension in term["priceDimensions"].values()
    ]


def test_the_full_filter_leaves_one_price(pricing: Any) -> None:
    [product] = products(pricing, instanceType="g6.xlarge", **ONE_PRICE)

    assert prices(product) == [("Hrs", "0.8048000000")]
    assert product["product"]["attributes"]["instanceType"] == "g6.xlarge"


@pytest.mark.parametrize(
    "left_out", ["capacitystatus", "operatingSystem", "preInstalledSw", "tenancy", "marketoption"]
)
def test_each_filter_that_is_left_out_lets_other_prices_in(pricing: Any, left_out: str) -> None:
    filters = {field: value for field, value in ONE_PRICE.items() if field != left_out}

    assert len(products(pricing, instanceType="g6.xlarge", **filters)) > 1


def test_unused_reservations_cost_nothing(pricing: Any) -> None:
    filters = ONE_PRICE | {"capacitystatus": "UnusedCapacityReservation"}

    [product] = products(pricing, instanceType="p5.4xlarge", **filters)

    assert prices(product) == [("Hrs", "0.0000000000")]


def test_disks_are_priced_by_the_gigabyte_month(pricing: Any) -> None:
    [product] = products(pricing, productFamily="Storage", volumeApiName="gp3", regionCode="us-east-1")

    assert prices(product) == [("GB-Mo", "0.0800000000")]


@pytest.mark.parametrize("change", [{"regionCode": "eu-central-1"}, {"operatingSystem": "linux"}])
def test_values_match_exactly_or_not_at_all(pricing: Any, change: dict[str, str]) -> None:
    assert products(pricing, instanceType="g6.xlarge", **ONE_PRICE | change) == []


def test_one_filter_may_name_several_values(pricing: Any) -> None:
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in ONE_PRICE.items()]
    several = {"Type": "ANY_OF", "Field": "instanceType", "Value": "g6.xlarge,g5.xlarge,g6.none"}

    answer = pricing.get_products(ServiceCode="AmazonEC2", Filters=[*filters, several])

    found = {json.loads(entry)["product"]["attributes"]["instanceType"] for entry in answer["PriceList"]}
    assert found == {"g5.xlarge", "g6.xlarge"}


def test_a_filter_that_is_too_long_is_refused(pricing: Any) -> None:
    several = {"Type": "ANY_OF", "Field": "instanceType", "Value": "g6.xlarge," * 103}

    with pytest.raises(ClientError) as refused:
        pricing.get_products(ServiceCode="AmazonEC2", Filters=[several])

    assert refused.value.response["Error"]["Code"] == "InvalidParameterException"


def test_a_list_comes_in_pages(pricing: Any) -> None:
    filters = [{"Type": "TERM_MATCH", "Field": "operatingSystem", "Value": "Linux"}]
    whole = pricing.get_products(ServiceCode="AmazonEC2", Filters=filters)["PriceList"]
    pages = pricing.get_paginator("get_products").paginate(
        ServiceCode="AmazonEC2", Filters=filters, PaginationConfig={"PageSize": 7}
    )

    assert [entry for page in pages for entry in page["PriceList"]] == whole
    assert len({json.loads(entry)["product"]["sku"] for entry in whole}) == len(whole)


def test_a_bad_page_token_is_refused(pricing: Any) -> None:
    with pytest.raises(ClientError) as refused:
        pricing.get_products(ServiceCode="AmazonEC2", NextToken="nonsense")

    assert refused.value.response["Error"]["Code"] == "InvalidNextTokenException"
