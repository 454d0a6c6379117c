"""On-demand prices from the AWS Price List API.

Source: Price List Query API (GetProducts), called in us-east-1 whatever region is priced.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from tensorant.adapters.ec2.errors import translated

if TYPE_CHECKING:
    from mypy_boto3_pricing import PricingClient

PRICING_REGION = "us-east-1"


@dataclass(frozen=True)
class Prices:
    """Prices of one region, in US dollars."""

    client: PricingClient
    region: str

    def compute_per_hour(self, instance_type: str) -> Decimal | None:
        """Linux, shared tenancy, on demand; None unless there is exactly one positive price."""
        return self._single(
            "Hrs",
            productFamily="Compute Instance",
            instanceType=instance_type,
            operatingSystem="Linux",
            tenancy="Shared",
            preInstalledSw="NA",
            capacitystatus="Used",
            marketoption="OnDemand",
        )

    def gp3_per_gib_month(self) -> Decimal | None:
        return self._single("GB-Mo", productFamily="Storage", volumeApiName="gp3")

    def _single(self, unit: str, **attributes: str) -> Decimal | None:
        found = {price for product in self._products(attributes) for price in _on_demand(product, unit)}
        positive = {price for price in found if price > 0}
        return positive.pop() if len(positive) == 1 else None

    def _products(self, attributes: dict[str, str]) -> Iterator[Any]:
        wanted = {"regionCode": self.region, **attributes}
        filters: Any = [
            {"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in wanted.items()
        ]
        request: Any = {
            "ServiceCode": "AmazonEC2",
            "FormatVersion": "aws_v1",
            "Filters": filters,
            "MaxResults": 100,
        }
        try:
            while True:
                answer = self.client.get_products(**request)
                yield from (json.loads(each) for each in answer["PriceList"])
                if not answer.get("NextToken"):
                    return
                request["NextToken"] = answer["NextToken"]
        except (ClientError, BotoCoreError) as error:
            raise translated(error, doing="read prices") from error


def _on_demand(product: Any, unit: str) -> Iterator[Decimal]:
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term.get("priceDimensions", {}).values():
            if dimension.get("unit") == unit and "USD" in dimension.get("pricePerUnit", {}):
                yield _plain(Decimal(dimension["pricePerUnit"]["USD"]))


def _plain(price: Decimal) -> Decimal:
    """Without the list's trailing zeros."""
    return price.quantize(Decimal(1)) if price == price.to_integral_value() else price.normalize()
