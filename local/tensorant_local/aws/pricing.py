"""The Pricing API's GetProducts, from a fixture; moto has no Pricing.

Source of the shapes: https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
and API_pricing_Filter.html
"""

from __future__ import annotations

import functools
import hashlib
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tensorant_local.aws import json_api
from tensorant_local.aws.json_api import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from wsgiref.types import StartResponse, WSGIEnvironment

FIXTURE = "fixtures/prices.json"
SERVICE = "AWSPriceListService"
VALUE_CHARACTERS = 1024
PAGE = 100
OFFER_TERM = "JRTCKXETXF"
"""The code of every on-demand term."""
HOURLY_RATE = "6YS6EN2CT7"
"""The code of every hourly, or monthly, rate."""

Product = dict[str, Any]


def is_for_pricing(environ: WSGIEnvironment) -> bool:
    """Whether a request is addressed to the Pricing API."""
    return json_api.is_for(SERVICE, environ)


def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer one request, as a WSGI application."""
    return json_api.answer(environ, start_response, {"GetProducts": get_products})


def get_products(request: dict[str, Any]) -> dict[str, Any]:
    """One page of the products that every filter of the request lets through."""
    if request.get("ServiceCode") != "AmazonEC2":
        raise RefusedError("InvalidParameterException", "The requested service code is invalid.")
    if request.get("FormatVersion", "aws_v1") != "aws_v1":
        raise RefusedError("InvalidParameterException", "The format version is invalid.")
    size = request.get("MaxResults", PAGE)
    if not 1 <= size <= PAGE:
        raise RefusedError("InvalidParameterException", "MaxResults must be from 1 to 100.")
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
        raise RefusedError("InvalidNextTokenException", "The pagination token is invalid.")
    return int(number)


def _passes(product: Product, filters: list[dict[str, str]]) -> bool:
    """Values are compared as they are written, case included; an attribute that isn't there matches nothing."""
    known = product["product"]["attributes"] | {"productFamily": product["product"]["productFamily"]}
    return all(known.get(wanted["Field"]) in _values(wanted) for wanted in filters)


def _values(wanted: dict[str, str]) -> list[str]:
    """ANY_OF takes several, separated by commas."""
    if len(wanted["Value"]) > VALUE_CHARACTERS:
        raise RefusedError("InvalidParameterException", "A filter's value has 1024 characters at most.")
    match wanted["Type"]:
        case "TERM_MATCH":
            return [wanted["Value"]]
        case "ANY_OF":
            return wanted["Value"].split(",")
        case other:
            raise RefusedError("InvalidParameterException", f"The filter type {other} is not simulated.")


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
