"""Service Quotas for EC2, from a fixture; moto knows those of VPC only.

Source of the shapes: https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html
"""

from __future__ import annotations

import functools
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tensorant_local.aws import json_api
from tensorant_local.aws.json_api import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIEnvironment

FIXTURE = "fixtures/quotas.json"
SERVICE = "ServiceQuotasV20190624"


def is_for_quotas(environ: WSGIEnvironment) -> bool:
    """Whether a request is addressed to Service Quotas."""
    return json_api.is_for(SERVICE, environ)


def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer one request, as a WSGI application."""
    actions = {"GetServiceQuota": get_service_quota, "GetAWSDefaultServiceQuota": get_default_quota}
    return json_api.answer(environ, start_response, actions)


def get_service_quota(request: dict[str, Any]) -> dict[str, Any]:
    """The quota that was applied to the account; one that never was is not there."""
    return _quota(request, "applied")


def get_default_quota(request: dict[str, Any]) -> dict[str, Any]:
    """What every account begins with."""
    return _quota(request, "default")


def _quota(request: dict[str, Any], kind: str) -> dict[str, Any]:
    fixture = _fixture()
    code = request.get("QuotaCode", "")
    row = fixture["quotas"].get(code, {}) if request.get("ServiceCode") == fixture["service"] else {}
    if kind not in row:
        raise RefusedError(
            "NoSuchResourceException", "The request failed because the resource does not exist."
        )
    return {
        "Quota": {
            "ServiceCode": fixture["service"],
            "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)",
            "QuotaCode": code,
            "QuotaName": row["name"],
            "Value": row[kind],
            "Unit": "None",
            "Adjustable": True,
            "GlobalQuota": False,
        }
    }


@functools.cache
def _fixture() -> dict[str, Any]:
    fixture: dict[str, Any] = json.loads(files(__package__).joinpath(FIXTURE).read_text())
    return fixture
