"""AWS's error codes as failure classes with their mends: the tables that `errors` reads.

Source: EC2 API error codes, and the error pages of the Price List, Service Quotas, STS and IAM APIs. Where
one code has several meanings, AWS's text tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass

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

AGAIN = "Nothing to do: it is tried again."
_CAPACITY = "Allow another GPU type or a subnet in another zone, or launch again later."
_POLICY = (
    "Compare the connection's policy with the one that Tensorant makes for it, and ask your administrator."
)
_KEYS = "Replace the connection's credentials with valid ones of the same account."
_KEYS_OR_REGION = f"{_KEYS} Check that the region is enabled in the account."
"""A region that is not enabled knows the account's keys no more than wrong ones, its STS included."""
_EXPIRED = "The temporary credentials have expired: replace them."
_SUPPORT = "Ask AWS Support about the account."
_IMAGE = "Choose an x86_64 Linux AMI with an EBS root disk, for instance the Deep Learning Base AMI."
_SUBNET = "Check the subnet's id and region."
_GROUP = "Check the security group's id; it must be in the subnets' region and VPC."
_PROFILE = (
    "Check the instance profile's ARN (not the role's); a profile that was just made is known after a minute."
)
_OURS = "This is a fault of Tensorant: report it with AWS's text."
_PRICES = "Prices can't be read as Tensorant asks for them: report it with AWS's text."
UNKNOWN = "Tensorant does not know this answer: act on AWS's text, or ask AWS Support."

CODES: dict[str, tuple[type[ProviderError], str]] = {
    # Capacity: another candidate, or later.
    "InsufficientInstanceCapacity": (Capacity, _CAPACITY),
    "InsufficientVolumeCapacity": (Capacity, "Use a subnet in another zone, or launch again later."),
    "InsufficientFreeAddressesInSubnet": (Capacity, "Free addresses in the subnet, or use a bigger one."),
    "Unsupported": (Capacity, "The zone does not offer this: allow another GPU type or another subnet."),
    # Quotas
    "VcpuLimitExceeded": (Quota, "Request more vCPUs for the instance family in Service Quotas."),
    "InstanceLimitExceeded": (Quota, "Request a higher instance limit in Service Quotas."),
    "MaxSpotInstanceCountExceeded": (
        Quota,
        "Tensorant asks for no Spot instances: look for an account policy that turns launches into Spot requests.",
    ),
    "VolumeLimitExceeded": (
        Quota,
        "Request a higher EBS storage limit in Service Quotas, or delete volumes.",
    ),
    "MaxIOPSLimitExceeded": (Quota, "Request a higher EBS IOPS limit in Service Quotas, or delete volumes."),
    # Permission: the credentials are good, and may not.
    "UnauthorizedOperation": (Permission, _POLICY),
    "AccessDenied": (Permission, _POLICY),
    "AccessDeniedException": (Permission, _POLICY),
    "TagPolicyViolation": (Permission, "Allow the tensorant: tags in your organization's tag policy."),
    "OptInRequired": (Permission, "Activate the service, or the image's subscription, in the account."),
    "PendingVerification": (Permission, "AWS is verifying the account; launch again in a few hours."),
    "Blocked": (Permission, _SUPPORT),
    "AccountDisabled": (Permission, _SUPPORT),
    # Credentials
    "AuthFailure": (Credentials, _KEYS_OR_REGION),
    "InvalidClientTokenId": (Credentials, _KEYS_OR_REGION),
    "UnrecognizedClientException": (Credentials, _KEYS),
    "SignatureDoesNotMatch": (Credentials, _KEYS),
    "ExpiredToken": (Credentials, _EXPIRED),
    "ExpiredTokenException": (Credentials, _EXPIRED),
    "RequestExpired": (
        Credentials,
        "Replace temporary credentials; the clock may be off by more than 15 min.",
    ),
    # Too many requests: nothing was done.
    "RequestLimitExceeded": (Throttled, AGAIN),
    "Throttling": (Throttled, AGAIN),
    "ThrottlingException": (Throttled, AGAIN),
    "TooManyRequestsException": (Throttled, AGAIN),
    # Whether AWS acted is open.
    "InternalError": (ProviderFault, AGAIN),
    "InternalFailure": (ProviderFault, AGAIN),
    "InternalErrorException": (ProviderFault, AGAIN),
    "ServiceException": (ProviderFault, AGAIN),
    "ServiceFailure": (ProviderFault, AGAIN),
    "ServiceUnavailable": (ProviderFault, AGAIN),
    "Unavailable": (ProviderFault, AGAIN),
    "ExpiredNextTokenException": (ProviderFault, AGAIN),
    # An ask with this token was put before, and may have made a machine.
    "IdempotentParameterMismatch": (ProviderFault, "Nothing to do: the machine is looked up by its token."),
    "IdempotentInstanceTerminated": (ProviderFault, "Nothing to do: the machine is looked up by its token."),
    # Settings of the connection
    "InvalidAMIID.NotFound": (
        Configuration,
        "Check the AMI's id, region and sharing, and whether the account's Allowed AMIs setting hides it.",
    ),
    "InvalidAMIID.Malformed": (Configuration, "Check the AMI's id."),
    "InvalidAMIID.Unavailable": (
        Configuration,
        "The AMI was deregistered or can't be launched: choose another.",
    ),
    "InvalidSnapshot.NotFound": (
        Configuration,
        "The AMI's snapshot is gone or not shared: choose another AMI.",
    ),
    "InvalidSubnetID.NotFound": (Configuration, _SUBNET),
    "InvalidSubnetId.NotFound": (Configuration, _SUBNET),
    "InvalidSubnetId": (Configuration, _SUBNET),
    "InvalidGroup.NotFound": (Configuration, _GROUP),
    "InvalidSecurityGroupID.NotFound": (Configuration, _GROUP),
    "InvalidKeyPair.NotFound": (
        Configuration,
        "Check the key pair's exact name; it must be in the connection's region.",
    ),
    "InvalidIamInstanceProfileArn.Malformed": (Configuration, _PROFILE),
    "NoSuchEntity": (Configuration, _PROFILE),
    "InvalidInstanceType": (Configuration, "The region does not know this instance type: choose another."),
    "InvalidParameterCombination": (
        Configuration,
        f"The AMI does not fit the instance type: it must support ENA. {_IMAGE}",
    ),
    "InvalidBlockDeviceMapping": (
        Configuration,
        "The disk does not fit the AMI's: check the connection again, so that its image is read anew.",
    ),
    "InvalidUserData.Malformed": (Configuration, _OURS),
    "OperationNotPermitted": (
        Configuration,
        "Turn off the instance's termination and stop protection in EC2, then choose Retry GPU release.",
    ),
    "RegionDisabledException": (Configuration, "Activate STS and the region in the account."),
    # What is asked of other services
    "NotFoundException": (Configuration, _PRICES),
    "InvalidParameterException": (Configuration, _PRICES),
    "InvalidNextTokenException": (Configuration, _PRICES),
    "NoSuchResourceException": (Configuration, "Service Quotas does not list this quota in the region."),
    "IllegalArgumentException": (Configuration, _OURS),
}


@dataclass(frozen=True, slots=True)
class Meaning:
    """One meaning of some codes: AWS's text contains `words` (in lower case)."""

    codes: frozenset[str]
    words: str
    kind: type[ProviderError]
    mend: str

    def fits(self, code: str, text: str) -> bool:
        return code in self.codes and self.words in text.lower()


_PARAMETER = frozenset({"InvalidParameter", "InvalidParameterValue"})

MEANINGS = (
    Meaning(
        frozenset({"AuthFailure"}),
        "not authorized for images",
        Configuration,
        "Share the AMI with the account, or choose another.",
    ),
    Meaning(
        _PARAMETER,
        "belong to different networks",
        Configuration,
        "Choose a security group and subnets of one VPC.",
    ),
    Meaning(_PARAMETER, "iam instance profile", Configuration, _PROFILE),
    Meaning(_PARAMETER, "user data is limited to", Configuration, _OURS),
    Meaning(
        _PARAMETER,
        "for instancetype",
        Configuration,
        "The region does not know this instance type: choose another.",
    ),
)

KMS = (
    "The account encrypts disks with a KMS key of its own: let the connection's identity use it (kms:CreateGrant, "
    "kms:Decrypt, kms:DescribeKey, kms:GenerateDataKeyWithoutPlaintext, kms:ReEncrypt*)."
)
