"""EC2's error codes as failure classes with their mend.

Source: EC2 API error codes; the meanings of `UnauthorizedOperation` and of state reasons from the same
pages. An unknown 4xx code is a configuration failure with AWS's own text, an unknown 5xx leaves it open
whether AWS acted.
"""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError

from tensorant.domain.errors import (
    Capacity,
    Configuration,
    Credentials,
    Permission,
    ProviderError,
    ProviderFault,
    Quota,
    Throttled,
)

SERVER_ERROR = 500

_CAPACITY = "Allow another GPU type or a subnet in another zone, or launch again later."
_SETTINGS = "Correct the connection's settings; all of them must belong to one region and one VPC."
_POLICY = "Compare the connection's policy with the one in the guide, and ask your administrator for the missing right."
_KEYS = "Replace the connection's credentials with valid ones of the same account."
_SUPPORT = "Ask AWS Support about the account."

CODES: dict[str, tuple[type[ProviderError], str]] = {
    "InsufficientInstanceCapacity": (Capacity, _CAPACITY),
    "InsufficientVolumeCapacity": (Capacity, _CAPACITY),
    "InsufficientFreeAddressesInSubnet": (Capacity, "Free addresses in the subnet, or use a bigger one."),
    "Unsupported": (Capacity, _CAPACITY),
    "VcpuLimitExceeded": (Quota, "Request more vCPUs for the instance family in Service Quotas."),
    "InstanceLimitExceeded": (Quota, "Request a higher instance limit in Service Quotas."),
    "VolumeLimitExceeded": (Quota, "Request a higher EBS limit in Service Quotas."),
    "MaxIOPSLimitExceeded": (Quota, "Request a higher EBS IOPS limit in Service Quotas."),
    "UnauthorizedOperation": (Permission, _POLICY),
    "AccessDenied": (Permission, _POLICY),
    "AccessDeniedException": (Permission, _POLICY),
    "TagPolicyViolation": (Permission, "Allow the tensorant: tags in your organization's tag policy."),
    "OptInRequired": (Permission, "Activate the service, or the image's subscription, in the account."),
    "PendingVerification": (Permission, "AWS is verifying the account; launch again in a few hours."),
    "Blocked": (Permission, _SUPPORT),
    "AccountDisabled": (Permission, _SUPPORT),
    "AuthFailure": (Credentials, f"{_KEYS} Check that the region is enabled in the account."),
    "InvalidClientTokenId": (Credentials, _KEYS),
    "UnrecognizedClientException": (Credentials, _KEYS),
    "SignatureDoesNotMatch": (Credentials, _KEYS),
    "ExpiredToken": (Credentials, "The temporary credentials have expired: replace them."),
    "ExpiredTokenException": (Credentials, "The temporary credentials have expired: replace them."),
    "RequestExpired": (Credentials, _KEYS),
    "RequestLimitExceeded": (Throttled, "Nothing to do: it is tried again."),
    "Throttling": (Throttled, "Nothing to do: it is tried again."),
    "ThrottlingException": (Throttled, "Nothing to do: it is tried again."),
    "InternalError": (ProviderFault, "Nothing to do: it is tried again."),
    "InternalFailure": (ProviderFault, "Nothing to do: it is tried again."),
    "ServiceUnavailable": (ProviderFault, "Nothing to do: it is tried again."),
    "Unavailable": (ProviderFault, "Nothing to do: it is tried again."),
    # An ask with this token was put in other words before, and may have made a machine.
    "IdempotentParameterMismatch": (ProviderFault, "Nothing to do: the machine is looked up by its token."),
    "InvalidAMIID.NotFound": (Configuration, "Check the AMI's id, region and sharing."),
    "InvalidAMIID.Malformed": (Configuration, "Check the AMI's id."),
    "InvalidAMIID.Unavailable": (Configuration, "The AMI was deregistered: choose another."),
}


def translated(error: ClientError | BotoCoreError, *, doing: str) -> ProviderError:
    """The domain's error for one of boto3's; no answer at all leaves it open whether AWS acted."""
    if not isinstance(error, ClientError):
        return ProviderFault(
            "no_answer",
            f"AWS did not answer the request to {doing}.",
            mend="Nothing to do: it is tried again.",
        )
    code = error.response["Error"]["Code"]
    text = error.response["Error"].get("Message", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    unknown = (ProviderFault if status >= SERVER_ERROR else Configuration, _SETTINGS)
    kind, mend = CODES.get(code, unknown)
    return kind(code, f"AWS refused to {doing}: {code}: {text}", mend=mend)


def code_of(error: ClientError | BotoCoreError) -> str | None:
    """AWS's own code; None if there was no answer."""
    return error.response["Error"]["Code"] if isinstance(error, ClientError) else None
