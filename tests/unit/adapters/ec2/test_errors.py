"""AWS's error codes: every one leads to the class of the one who can mend it, and to a mend that fits."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    InvalidRegionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)

from tensorant.adapters.ec2.codes import CODES
from tensorant.adapters.ec2.errors import translated
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

ROWS: list[tuple[str, int, type[ProviderError], str]] = [
    # EC2's errors: code, HTTP status, class, and a word of the mend
    ("InsufficientInstanceCapacity", 500, Capacity, "another GPU type or a subnet in another zone"),
    ("InsufficientVolumeCapacity", 500, Capacity, "another zone"),
    ("InsufficientFreeAddressesInSubnet", 400, Capacity, "bigger"),
    ("Unsupported", 400, Capacity, "another subnet"),
    ("VcpuLimitExceeded", 400, Quota, "L-DB2E81BA"),
    ("InstanceLimitExceeded", 400, Quota, "Service Quotas"),
    ("MaxSpotInstanceCountExceeded", 400, Quota, "Spot"),
    ("VolumeLimitExceeded", 400, Quota, "EBS"),
    ("MaxIOPSLimitExceeded", 400, Quota, "EBS"),
    ("InvalidAMIID.NotFound", 400, Configuration, "id, region and sharing"),
    ("InvalidAMIID.Malformed", 400, Configuration, "AMI"),
    ("InvalidAMIID.Unavailable", 400, Configuration, "deregistered"),
    ("InvalidSnapshot.NotFound", 400, Configuration, "AMI"),
    ("InvalidSubnetID.NotFound", 400, Configuration, "subnet"),
    ("InvalidSubnetId.NotFound", 400, Configuration, "subnet"),
    ("InvalidSubnetId", 400, Configuration, "subnet"),
    ("InvalidGroup.NotFound", 400, Configuration, "security group"),
    ("InvalidSecurityGroupID.NotFound", 400, Configuration, "security group"),
    ("InvalidKeyPair.NotFound", 400, Configuration, "key pair"),
    ("InvalidIamInstanceProfileArn.Malformed", 400, Configuration, "instance profile"),
    ("InvalidInstanceType", 400, Configuration, "instance type"),
    ("InvalidParameterCombination", 400, Configuration, "ENA"),
    ("InvalidBlockDeviceMapping", 400, Configuration, "disk"),
    ("InvalidUserData.Malformed", 400, Configuration, "report"),
    ("InvalidParameter", 400, Configuration, "AWS's text"),
    ("InvalidParameterValue", 400, Configuration, "AWS's text"),
    ("OperationNotPermitted", 400, Configuration, "protection"),
    ("IncorrectInstanceState", 400, Configuration, "AWS's text"),
    ("UnauthorizedOperation", 403, Permission, "ec2:RunInstances"),
    ("TagPolicyViolation", 400, Permission, "tag policy"),
    ("OptInRequired", 401, Permission, "subscription"),
    ("PendingVerification", 400, Permission, "few hours"),
    ("Blocked", 403, Permission, "AWS Support"),
    ("AccountDisabled", 403, Permission, "AWS Support"),
    ("AuthFailure", 401, Credentials, "region is enabled"),
    ("InvalidClientTokenId", 403, Credentials, "valid ones"),
    ("SignatureDoesNotMatch", 403, Credentials, "valid ones"),
    ("ExpiredToken", 400, Credentials, "expired"),
    ("RequestExpired", 400, Credentials, "15 min"),
    ("RequestLimitExceeded", 503, Throttled, "tried again"),
    ("InternalError", 500, ProviderFault, "tried again"),
    ("InternalFailure", 500, ProviderFault, "tried again"),
    ("ServiceUnavailable", 503, ProviderFault, "tried again"),
    ("Unavailable", 503, ProviderFault, "tried again"),
    ("IdempotentParameterMismatch", 400, ProviderFault, "token"),
    ("IdempotentInstanceTerminated", 400, ProviderFault, "token"),
    # the Pricing API's
    ("ThrottlingException", 400, Throttled, "tried again"),
    ("ExpiredNextTokenException", 400, ProviderFault, "tried again"),
    ("AccessDeniedException", 400, Permission, "Allow"),
    ("NotFoundException", 400, Configuration, "report"),
    ("InvalidParameterException", 400, Configuration, "report"),
    ("InvalidNextTokenException", 400, Configuration, "report"),
    ("InternalErrorException", 500, ProviderFault, "tried again"),
    # Service Quotas'
    ("TooManyRequestsException", 400, Throttled, "tried again"),
    ("ServiceException", 500, ProviderFault, "tried again"),
    ("IllegalArgumentException", 400, Configuration, "report"),
    ("NoSuchResourceException", 400, Configuration, "Service Quotas"),
    # those of STS, IAM and every service
    ("AccessDenied", 403, Permission, "Allow"),
    ("UnrecognizedClientException", 400, Credentials, "valid ones"),
    ("ExpiredTokenException", 400, Credentials, "expired"),
    ("RegionDisabledException", 403, Configuration, "region"),
    ("NoSuchEntity", 404, Configuration, "instance profile"),
    ("ServiceFailure", 500, ProviderFault, "tried again"),
    ("Throttling", 400, Throttled, "tried again"),
]


def refusal(
    code: str, status: int = 400, text: str = "AWS's own text.", operation: str = "RunInstances"
) -> ClientError:
    answer = {"Error": {"Code": code, "Message": text}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, operation)  # type: ignore[arg-type]


@pytest.mark.parametrize(("code", "status", "kind", "word"), ROWS)
def test_a_code_has_its_class_a_mend_and_awss_own_text(
    code: str, status: int, kind: type[ProviderError], word: str
) -> None:
    error = translated(refusal(code, status), doing="start a g6.xlarge")

    assert type(error) is kind
    assert error.code == code
    assert word in error.mend
    assert "start a g6.xlarge" in error.message
    assert "AWS's own text." in error.message


def test_every_code_that_is_translated_stands_in_this_table() -> None:
    assert CODES.keys() <= {code for code, *_ in ROWS}


# -- texts that tell meanings apart ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "text", "word"),
    [
        (
            "InvalidParameter",
            "Security group sg-1 and subnet subnet-1 belong to different networks.",
            "security group and subnets of one VPC",
        ),
        (
            "InvalidParameterValue",
            "Value (arn:aws:iam::1:role/x) is invalid. Invalid IAM Instance Profile ARN",
            "instance profile's ARN (not the role's)",
        ),
        ("InvalidParameterValue", "Invalid IAM Instance Profile name", "known after a minute"),
        ("InvalidParameterValue", "User data is limited to 16384 bytes", "report it"),
        ("InvalidUserData.Malformed", "User data is limited to 16384 bytes", "report it"),
        ("InvalidParameterValue", "Invalid value 'g9.none' for InstanceType.", "instance type"),
        ("AuthFailure", "Not authorized for images: [ami-1]", "Share the AMI"),
        ("InvalidParameterValue", "The KMS key arn:aws:kms:… is not usable.", "kms:CreateGrant"),
    ],
)
def test_where_a_code_has_several_meanings_the_text_decides(code: str, text: str, word: str) -> None:
    error = translated(refusal(code, text=text), doing="start")

    assert type(error) is Configuration
    assert word in error.mend
    assert text in error.message


USER = "User: arn:aws:iam::1:user/x is not authorized to perform: "


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{USER}ec2:RunInstances because no identity-based policy allows it", ["Allow ec2:RunInstances."]),
        (f"{USER}ec2:CreateTags on resource: arn:aws:ec2:…", ["Allow ec2:CreateTags."]),
        (f"{USER}iam:PassRole on resource: arn:aws:iam::1:role/x", ["Allow iam:PassRole."]),
        (
            f"{USER}ec2:RunInstances with an explicit deny in a service control policy",
            ["service control policy of your AWS organization", "ec2:RunInstances"],
        ),
        (
            f"{USER}ec2:RunInstances because no service control policy allows the ec2:RunInstances action",
            ["service control policy of your AWS organization", "ec2:RunInstances"],
        ),
        (
            f"{USER}ec2:RunInstances with an explicit deny in a resource control policy",
            ["resource control policy"],
        ),
        (
            f"{USER}ec2:RunInstances because no permissions boundary allows the ec2:RunInstances action",
            ["permissions boundary"],
        ),
        (f"{USER}ec2:RunInstances because no session policy allows it", ["session's policy"]),
        (
            f"{USER}ec2:RunInstances with an explicit deny in an identity-based policy",
            ["denies ec2:RunInstances explicitly"],
        ),
        (f"{USER}kms:CreateGrant on resource: arn:aws:kms:…", ["KMS key", "kms:CreateGrant"]),
        ("You are not authorized to perform this operation.", ["Allow ec2:RunInstances."]),
    ],
)
def test_a_missing_right_names_the_action_and_who_withholds_it(text: str, words: list[str]) -> None:
    error = translated(refusal("UnauthorizedOperation", 403, text), doing="start a g6.xlarge")

    assert type(error) is Permission
    assert all(word in error.mend for word in words), error.mend


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        ("DescribeSubnets", "ec2:DescribeSubnets"),
        ("GetProducts", "pricing:GetProducts"),
        ("GetServiceQuota", "servicequotas:GetServiceQuota"),
        ("GetInstanceProfile", "iam:GetInstanceProfile"),
        ("AssumeRole", "sts:AssumeRole"),
    ],
)
def test_a_text_that_names_no_action_leaves_the_operation(operation: str, action: str) -> None:
    error = translated(refusal("AccessDenied", 403, "No.", operation), doing="look")

    assert f"Allow {action}." in error.mend


def test_a_blob_that_only_the_account_can_decode_is_cut_off() -> None:
    text = "You are not authorized. Encoded authorization failure message: iZ4vWt…\nXy0="

    error = translated(refusal("UnauthorizedOperation", 403, text), doing="start")

    assert error.message == "AWS refused to start: UnauthorizedOperation: You are not authorized."


@pytest.mark.parametrize(
    ("instance_type", "code", "other"),
    [
        ("g6.xlarge", "Running On-Demand G and VT instances” (L-DB2E81BA)", "L-417A185B"),
        ("gr6.4xlarge", "L-DB2E81BA", "L-417A185B"),
        ("p5.4xlarge", "Running On-Demand P instances” (L-417A185B)", "L-DB2E81BA"),
    ],
)
def test_a_full_quota_is_named_by_its_code(instance_type: str, code: str, other: str) -> None:
    error = translated(refusal("VcpuLimitExceeded"), doing="start", instance_type=instance_type)

    assert code in error.mend
    assert other not in error.mend


# -- what is open, and what is not -------------------------------------------------------------------------


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
def test_no_answer_leaves_it_open_whether_aws_acted(error: BotoCoreError) -> None:
    found = translated(error, doing="start a g6.xlarge")

    assert isinstance(found, ProviderFault)
    assert found.code == "no_answer"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (NoCredentialsError(), Credentials),
        (InvalidRegionError(region_name="us east"), Configuration),
        (ParamValidationError(report="UserData: secret"), Configuration),
    ],
)
def test_what_was_never_sent_is_a_definite_no(error: BotoCoreError, kind: type[ProviderError]) -> None:
    found = translated(error, doing="start a g6.xlarge")

    assert type(found) is kind
    assert found.mend
    assert "secret" not in found.message


def test_a_refused_signature_does_not_repeat_the_request_with_its_token() -> None:
    told = (
        "The request signature we calculated does not match the signature you provided.\n\n"
        "The Canonical String for this request should have been\n'POST\n/\n\n"
        "x-amz-security-token:FwoGZXIvYXdzEXAMPLE\n'"
    )
    answer: Any = {
        "Error": {"Code": "SignatureDoesNotMatch", "Message": told},
        "ResponseMetadata": {"HTTPStatusCode": 403},
    }

    error = translated(ClientError(answer, "DescribeInstances"), doing="read the instance")

    assert "does not match the signature you provided." in error.message
    assert "FwoGZXIvYXdzEXAMPLE" not in error.message
