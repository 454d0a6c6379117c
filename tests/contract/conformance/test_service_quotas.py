"""Service Quotas as AWS documents it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from tensorant_local.aws.server import EmbeddedAws

G_AND_VT, P = "L-DB2E81BA", "L-417A185B"


@pytest.fixture(scope="module")
def quotas(aws: EmbeddedAws) -> Any:
    return aws.client("service-quotas")


def refusal(call: Any, **asked: str) -> str:
    with pytest.raises(ClientError) as refused:
        call(**asked)
    return str(refused.value.response["Error"]["Code"])


def test_an_applied_quota_is_told_in_vcpus(quotas: Any) -> None:
    quota = quotas.get_service_quota(ServiceCode="ec2", QuotaCode=G_AND_VT)["Quota"]

    assert quota["QuotaName"] == "Running On-Demand G and VT instances"
    assert quota["Value"] == 64.0


def test_a_quota_that_was_never_applied_has_its_default_only(quotas: Any) -> None:
    asked = {"ServiceCode": "ec2", "QuotaCode": P}

    assert refusal(quotas.get_service_quota, **asked) == "NoSuchResourceException"
    assert quotas.get_aws_default_service_quota(**asked)["Quota"]["Value"] == 0.0


@pytest.mark.parametrize(
    "asked", [{"ServiceCode": "ec2", "QuotaCode": "L-NONE"}, {"ServiceCode": "none", "QuotaCode": P}]
)
def test_an_unknown_quota_is_refused(quotas: Any, asked: dict[str, str]) -> None:
    assert refusal(quotas.get_aws_default_service_quota, **asked) == "NoSuchResourceException"


def test_a_refusal_that_the_cloud_was_told_is_given(aws: EmbeddedAws, quotas: Any) -> None:
    asked = {"ServiceCode": "ec2", "QuotaCode": G_AND_VT}
    aws.refuse_action("GetServiceQuota", "AccessDeniedException")

    assert refusal(quotas.get_service_quota, **asked) == "AccessDeniedException"

    aws.refuse_action("GetServiceQuota", None)
    assert quotas.get_service_quota(**asked)["Quota"]["QuotaCode"] == G_AND_VT
