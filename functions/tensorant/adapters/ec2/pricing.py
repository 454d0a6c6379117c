"""On-demand prices from the AWS Price List API.

Source: Price List Query API (GetProducts), called in us-east-1 whatever region is priced.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from tensorant.adapters.ec2.errors import code_of, translated

if TYPE_CHECKING:
    from mypy_boto3_pricing import PricingClient

PRICING_REGION = "us-east-1"

VALUE_CHARACTERS = 1024
"""Of a filter, at most (Pricing API, Filter)."""

COMPUTE = {
    "productFamily": "Compute Instance",
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}
"""Without any one of these, other prices of the same type come along. Values are compared case included."""

PLAIN = {"operation": {"RunInstances", ""}, "licenseModel": {"No License required", "NA", ""}}
"""Further attributes that tell a price apart where a product has them: software is billed by other operations."""


@dataclass(frozen=True)
class Prices:
    """Prices of one region, in US dollars."""

    client: PricingClient
    region: str

    def compute_per_hour(self, instance_type: str) -> Decimal | None:
        """Linux, shared tenancy, on demand; None unless there is exactly one positive price."""
        products = self._products({**COMPUTE, "instanceType": instance_type})
        return _single(products, "Hrs")

    def all_compute_per_hour(self, instance_types: Sequence[str]) -> dict[str, Decimal | None]:
        """The same for many types, with one question (or a few) to AWS."""
        found: dict[str, list[Any]] = {each: [] for each in instance_types}
        for some in _that_fit(instance_types):
            for product in self._products(COMPUTE, any_of={"instanceType": ",".join(some)}):
                found.get(_attributes(product).get("instanceType", ""), []).append(product)
        return {name: _single(products, "Hrs") for name, products in found.items()}

    def gp3_per_gib_month(self) -> Decimal | None:
        return _single(self._products({"productFamily": "Storage", "volumeApiName": "gp3"}), "GB-Mo")

    # -- asking ------------------------------------------------------------------------------------------

    def _products(self, equal: Mapping[str, str], any_of: Mapping[str, str] | None = None) -> list[Any]:
        """All products with these attributes. A page token that expired meanwhile starts the list over, once."""
        request: dict[str, Any] = {
            "ServiceCode": "AmazonEC2",
            "FormatVersion": "aws_v1",
            "Filters": [
                *_filters("TERM_MATCH", {"regionCode": self.region, **equal}),
                *_filters("ANY_OF", any_of or {}),
            ],
            "MaxResults": 100,
        }
        try:
            try:
                return list(self._pages(request))
            except ClientError as error:
                if code_of(error) != "ExpiredNextTokenException":
                    raise
                return list(self._pages(request))
        except (ClientError, BotoCoreError) as error:
            raise translated(error, doing=f"read prices in {PRICING_REGION}") from error

    def _pages(self, request: Mapping[str, Any]) -> Iterator[Any]:
        answer = self.client.get_products(**request)
        while True:
            yield from (json.loads(each) for each in answer["PriceList"])
            if not answer.get("NextToken"):
                return
            answer = self.client.get_products(**request, NextToken=answer["NextToken"])


def _filters(kind: str, attributes: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Type": kind, "Field": name, "Value": value} for name, value in attributes.items()]


def _that_fit(names: Sequence[str]) -> Iterator[list[str]]:
    """In lots whose names, joined by commas, fit into one filter."""
    lot: list[str] = []
    for name in names:
        if lot and len(",".join([*lot, name])) > VALUE_CHARACTERS:
            yield lot
            lot = []
        lot.append(name)
    if lot:
        yield lot


# -- reading products ------------------------------------------------------------------------------------


def _single(products: Sequence[Any], unit: str) -> Decimal | None:
    """The one positive price of the products; several, or none, are no price."""
    found = {price for product in products if _is_plain(product) for price in _on_demand(product, unit)}
    positive = {price for price in found if price > 0}
    return positive.pop() if len(positive) == 1 else None


def _attributes(product: Any) -> Mapping[str, str]:
    found: Mapping[str, str] = product.get("product", {}).get("attributes", {})
    return found


def _is_plain(product: Any) -> bool:
    attributes = _attributes(product)
    return all(attributes.get(name, "") in values for name, values in PLAIN.items())


def _on_demand(product: Any, unit: str) -> Iterator[Decimal]:
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        if _in_force(term):
            for dimension in term.get("priceDimensions", {}).values():
                if dimension.get("unit") == unit and "USD" in dimension.get("pricePerUnit", {}):
                    yield _plain(Decimal(dimension["pricePerUnit"]["USD"]))


def _in_force(term: Mapping[str, Any]) -> bool:
    """A price that begins tomorrow is not today's."""
    begins = term.get("effectiveDate")
    return begins is None or datetime.fromisoformat(begins) <= datetime.now(tz=UTC)


def _plain(price: Decimal) -> Decimal:
    """Without the list's trailing zeros."""
    return price.quantize(Decimal(1)) if price == price.to_integral_value() else price.normalize()
