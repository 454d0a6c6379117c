"""EC2's error codes: every one leads to the class of the one who can mend it."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError

from tensorant.adapters.ec2.errors import CODES, translated
from tensorant.domain.errors import (
    DOUBTFUL,
    Capacity,
    Configuration,
    Credentials,
    Permission,
    ProviderError,
    ProviderFault,
    Quota,
    Throttled,
)

CLASSES: dict[type[ProviderError], tuple[str, ...]] = {
    Capacity: (
        "InsufficientInstanceCapacity",
        "InsufficientVolumeCapacity",
        "InsufficientFreeAddressesInSubnet",
        "Unsupported",
    ),
    Quota: ("VcpuLimitExceeded", "InstanceLimitExceeded", "VolumeLimitExceeded", "MaxIOPSLimitExceeded"),
    Permission: (
        "UnauthorizedOperation",
        "AccessDenied",
        "AccessDeniedException",
        "TagPolicyViolation",
        "OptInRequired",
        "PendingVerification",
        "Blocked",
        "AccountDisabled",
    ),
    Credentials: (
        "AuthFailure",
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "SignatureDoesNotMatch",
        "ExpiredToken",
        "ExpiredTokenException",
        "RequestExpired",
    ),
    Throttled: ("RequestLimitExceeded", "Throttling", "ThrottlingException"),
    ProviderFault: (
        "InternalError",
        "InternalFailure",
        "ServiceUnavailable",
        "Unavailable",
        "IdempotentParameterMismatch",
    ),
    Configuration: (
        "InvalidAMIID.NotFound",
        "InvalidAMIID.Malformed",
        "InvalidAMIID.Unavailable",
        "InvalidSubnetID.NotFound",
        "InvalidGroup.NotFound",
        "InvalidSecurityGroupID.NotFound",
        "InvalidKeyPair.NotFound",
        "InvalidParameter",
        "InvalidParameterValue",
        "InvalidParameterCombination",
        "InvalidIamInstanceProfileArn.Malformed",
        "InvalidBlockDeviceMapping",
        "IncorrectInstanceState",
    ),
}
ROWS = [(code, kind) for kind, codes in CLASSES.items() for code in codes]


def refusal(code: str, status: int = 400) -> ClientError:
    return ClientError(
        {
            "Error": {"Code": code, "Message": "AWS's own text."},
            "ResponseMetadata": {"HTTPStatusCode": status},
        },  # type: ignore[typeddict-item]
        "RunInstances",
    )


@pytest.mark.parametrize(("code", "kind"), ROWS)
def test_a_code_has_its_class_a_mend_and_awss_own_text(code: str, kind: type[ProviderError]) -> None:
    error = translated(refusal(code), doing="start a g6.xlarge")

    assert type(error) is kind
    assert error.code == code
    assert error.mend
    assert "start a g6.xlarge" in error.message
    assert "AWS's own text." in error.message


def test_every_code_that_is_translated_stands_in_this_table() -> None:
    assert CODES.keys() <= {code for code, _ in ROWS}


@pytest.mark.parametrize("status", [500, 503])
def test_want_of_capacity_is_a_definite_no_though_it_comes_as_a_server_error(status: int) -> None:
    error = translated(refusal("InsufficientInstanceCapacity", status), doing="start")

    assert not isinstance(error, DOUBTFUL)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, Configuration), (403, Configuration), (500, ProviderFault), (503, ProviderFault)],
)
def test_an_unknown_code_is_definite_unless_the_server_failed(status: int, kind: type[ProviderError]) -> None:
    assert type(translated(refusal("SomethingNew", status), doing="start")) is kind


@pytest.mark.parametrize(
    "error",
    [
        ReadTimeoutError(endpoint_url="https://ec2"),
        ConnectTimeoutError(endpoint_url="https://ec2"),
        EndpointConnectionError(endpoint_url="https://ec2"),
    ],
)
def test_no_answer_leaves_it_open_whether_aws_acted(error: ReadTimeoutError) -> None:
    found = translated(error, doing="start a g6.xlarge")

    assert isinstance(found, ProviderFault)
    assert found.code == "no_answer"
