"""The Pricing API's GetProducts, from a fixture; moto has no Pricing.

Source of the shapes: https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
"""

from __future__ import annotations

import functools
import hashlib
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from wsgiref.types import StartResponse, WSGIEnvironment

FIXTURE = "fixtures/prices.json"
PAGE = 100
OFFER_TERM = "JRTCKXETXF"
"""The code of every on-demand term."""
HOURLY_RATE = "6YS6EN2CT7"
"""The code of every hourly, or monthly, rate."""

Product = dict[str, Any]


class PricingError(Exception):
    """A refusal, by the API's name for it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def is_for_pricing(environ: WSGIEnvironment) -> bool:
    """Whether a request is addressed to the Pricing API."""
    return str(environ.get("HTTP_X_AMZ_TARGET", "")).startswith("AWSPriceListService.")


def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer one request, as a WSGI application."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    request = json.loads(environ["wsgi.input"].read(length) or b"{}")
    try:
        status, body = "200 OK", _acted(environ["HTTP_X_AMZ_TARGET"].split(".")[1], request)
    except PricingError as error:
        status, body = "400 Bad Request", {"__type": error.code, "message": str(error)}
    payload = json.dumps(body).encode()
    headers = [("Content-Type", "application/x-amz-json-1.1"), ("Content-Length", str(len(payload)))]
    start_response(status, headers)
    return [payload]


def _acted(action: str, request: dict[str, Any]) -> dict[str, Any]:
    if action != "GetProducts":
        raise PricingError("UnknownOperationException", f"{action} is not part of the embedded cloud")
    return get_products(request)


def get_products(request: dict[str, Any]) -> dict[str, Any]:
    """One page of the products that every filter of the request lets through."""
    if request.get("ServiceCode") != "AmazonEC2":
        raise PricingError("InvalidParameterException", "The requested service code is invalid.")
    if request.get("FormatVersion", "aws_v1") != "aws_v1":
        raise PricingError("InvalidParameterException", "The format version is invalid.")
    size = request.get("MaxResults", PAGE)
    if not 1 <= size <= PAGE:
        raise PricingError("InvalidParameterException", "MaxResults must be from 1 to 100.")
    start = _offset(request.get("NextToken"))
    found = [product for product in products() if _passes(product, request.get("Filters", []))]
    page: dict[str, Any] = {
        "FormatVersion": "aws_v1",
        "PriceList": [json.dumps(product) for product in found[start : start + size]],
    }
    return page | ({"NextToken": f"page:{start + size}"} if start + size < len(found) else {})


def _offset(token: str | None) -> int:
    if not token:
        return 0
    kind, _, number = token.partition(":")
    if kind != "page" or not number.isdigit():
        raise PricingError("InvalidNextTokenException", "The pagination token is invalid.")
    return int(number)


def _passes(product: Product, filters: list[dict[str, str]]) -> bool:
    """Values are compared as they are written, case included; an attribute that isn't there matches nothing."""
    known = product["product"]["attributes"] | {"productFamily": product["product"]["productFamily"]}
    for wanted in filters:
        if wanted["Type"] != "TERM_MATCH":
            raise PricingError(
                "InvalidParameterException", f"Only TERM_MATCH is simulated, not {wanted['Type']}."
            )
        if known.get(wanted["Field"]) != wanted["Value"]:
            return False
    return True


@functools.cache
def products() -> tuple[Product, ...]:
    """The whole price list."""
    fixture = json.loads(files(__package__).joinpath(FIXTURE).read_text())
    return (*_compute(fixture), *_storage(fixture))


def _compute(fixture: dict[str, Any]) -> Iterator[Product]:
    for instance_type, row in fixture["compute_per_hour"].items():
        attributes = {
            "servicecode": "AmazonEC2",
            "servicename": "Amazon Elastic Compute Cloud",
            "location": fixture["location"],
            "locationType": "AWS Region",
            "regionCode": fixture["region"],
            "instanceType": instance_type,
            "instanceFamily": "GPU instance",
            "currentGeneration": "Yes",
            "vcpu": row["vcpu"],
            "memory": row["memory"],
            "gpu": row["gpu"],
            "tenancy": "Shared",
            "operatingSystem": "Linux",
            "preInstalledSw": "NA",
            "licenseModel": "No License required",
            "capacitystatus": "Used",
            "marketoption": "OnDemand",
            "usagetype": f"BoxUsage:{instance_type}",
            "operation": "RunInstances",
            "usageoperation": "RunInstances",
        }
        yield _product("Compute Instance", attributes, row["price"], "Hrs", fixture)
        for trap in fixture["traps"]["rows"]:
            yield _product("Compute Instance", attributes | trap["attributes"], trap["price"], "Hrs", fixture)


def _storage(fixture: dict[str, Any]) -> Iterator[Product]:
    for name, row in fixture["storage_per_gigabyte_month"].items():
        attributes = {
            "servicecode": "AmazonEC2",
            "location": fixture["location"],
            "locationType": "AWS Region",
            "regionCode": fixture["region"],
            "storageMedia": "SSD-backed",
            "volumeType": "General Purpose",
            "volumeApiName": name,
            "usagetype": row["usagetype"],
            "operation": "",
        }
        yield _product("Storage", attributes, row["price"], "GB-Mo", fixture)


def _product(
    family: str, attributes: dict[str, str], price: str, unit: str, fixture: dict[str, Any]
) -> Product:
    """One product with its on-demand term, in the shape of format aws_v1."""
    digest = hashlib.sha256(json.dumps([family, attributes]).encode()).hexdigest()
    sku = digest[:16].upper()
    term = f"{sku}.{OFFER_TERM}"
    rate = f"{term}.{HOURLY_RATE}"
    dimension = {
        "rateCode": rate,
        "unit": unit,
        "beginRange": "0",
        "endRange": "Inf",
        "description": f"${price} per {unit}",
        "appliesTo": [],
        "pricePerUnit": {fixture["currency"]: price},
    }
    on_demand = {
        "sku": sku,
        "offerTermCode": OFFER_TERM,
        "effectiveDate": f"{fixture['date']}T00:00:00Z",
        "termAttributes": {},
        "priceDimensions": {rate: dimension},
    }
    return {
        "product": {"sku": sku, "productFamily": family, "attributes": attributes},
        "serviceCode": "AmazonEC2",
        "terms": {"OnDemand": {term: on_demand}},
        "version": fixture["date"].replace("-", ""),
        "publicationDate": f"{fixture['date']}T00:00:00Z",
    }
