"""boto3's errors as the domain's, each with its mend. The tables are in `codes`.

An unknown 4xx code is a configuration failure with AWS's own text, an unknown 5xx leaves it open whether
AWS acted.
"""

from __future__ import annotations

import re

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    InvalidRegionError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
)

from tensorant.adapters.ec2.codes import AGAIN, CODES, KMS, MEANINGS, UNKNOWN
from tensorant.adapters.ec2.families import G_AND_VT, P, QuotaFamily, family_of
from tensorant.domain.errors import Configuration, Credentials, Permission, ProviderError, ProviderFault

SERVER_ERROR = 500

_NOTHING_SENT: tuple[tuple[type[BotoCoreError], type[ProviderError], str, str], ...] = (
    (NoCredentialsError, Credentials, "no_credentials", "Give the connection credentials."),
    (PartialCredentialsError, Credentials, "no_credentials", "Give the connection complete credentials."),
    (CredentialRetrievalError, Credentials, "no_credentials", "Give the connection valid credentials."),
    (InvalidRegionError, Configuration, "invalid_region", "Choose a commercial region of AWS."),
    (ParamValidationError, Configuration, "invalid_request", "Correct the connection's settings."),
)
"""Errors of the request itself: AWS never saw it."""

_ACTION = re.compile(r"perform:? ([a-z0-9-]+:[A-Za-z]+)")
_BLOB = re.compile(
    r"\s*(?:Encoded authorization failure message:|The Canonical String for this request).*", re.DOTALL
)
"""Only the account itself can decode the first (sts:DecodeAuthorizationMessage), and it fills a screen; the
second repeats the request's headers, a session token among them."""

_SERVICES = {
    "GetProducts": "pricing",
    "GetServiceQuota": "servicequotas",
    "GetAWSDefaultServiceQuota": "servicequotas",
    "GetInstanceProfile": "iam",
    "AssumeRole": "sts",
    "GetCallerIdentity": "sts",
}
"""By the API's operation, as policies call its service; all others are EC2's."""

_WHO_DENIES = (
    (
        "service control policy",
        "A service control policy of your AWS organization does not allow {}: ask the organization's administrator.",
    ),
    (
        "resource control policy",
        "A resource control policy of your AWS organization does not allow {}: ask the organization's administrator.",
    ),
    (
        "permissions boundary",
        "The identity's permissions boundary does not allow {}: ask your administrator to widen it.",
    ),
    ("session policy", "The session's policy does not allow {}: make the temporary credentials without it."),
    (
        "explicit deny in an identity-based policy",
        "A policy of the identity denies {} explicitly: remove that statement.",
    ),
)
"""What AWS's text says of the kind of policy, and whose turn it is (IAM user guide, "Troubleshoot access denied")."""


def translated(
    error: ClientError | BotoCoreError, *, doing: str, instance_type: str | None = None
) -> ProviderError:
    """The domain's error for one of boto3's; no answer at all leaves it open whether AWS acted.

    `instance_type` is what was asked for: it names the quota that is used up.
    """
    if not isinstance(error, ClientError):
        return _without_answer(error, doing)
    code = error.response["Error"]["Code"]
    text = _BLOB.sub("", error.response["Error"].get("Message", ""))
    kind, mend = _meaning(error, code, text)
    if code == "VcpuLimitExceeded":
        mend = _more_vcpus(instance_type)
    elif kind is Permission and code in {"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"}:
        mend = _permission_mend(action_of(error), text, mend)
    elif kind is Configuration and "kms" in text.lower():
        mend = KMS
    return kind(code, f"AWS refused to {doing}: {code}: {text}", mend=mend)


def code_of(error: ClientError | BotoCoreError) -> str | None:
    """AWS's own code; None if there was no answer."""
    return error.response["Error"]["Code"] if isinstance(error, ClientError) else None


def action_of(error: ClientError) -> str:
    """The action that a policy would have to allow, as AWS's text names it, else by the operation."""
    named = _ACTION.search(error.response["Error"].get("Message", ""))
    if named:
        return named.group(1)
    return f"{_SERVICES.get(error.operation_name, 'ec2')}:{error.operation_name}"


def _meaning(error: ClientError, code: str, text: str) -> tuple[type[ProviderError], str]:
    for meaning in MEANINGS:
        if meaning.fits(code, text):
            return meaning.kind, meaning.mend
    if code in CODES:
        return CODES[code]
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return (ProviderFault, AGAIN) if status >= SERVER_ERROR else (Configuration, UNKNOWN)


def _permission_mend(action: str, text: str, otherwise: str) -> str:
    if action.startswith("kms:"):
        return KMS
    told = text.lower()
    for words, mend in _WHO_DENIES:
        if words in told:
            return mend.format(action)
    return f"Allow {action}. {otherwise}"


def _more_vcpus(instance_type: str | None) -> str:
    family = family_of(instance_type) if instance_type else None
    quotas = [family] if family else [G_AND_VT, P]
    return (
        f"Request more vCPUs in Service Quotas, in the connection's region, for {' or '.join(map(_named, quotas))}; "
        "or free some: other running instances of the family count too."
    )


def _named(family: QuotaFamily) -> str:
    return f"“{family.title}” ({family.code})"


def _without_answer(error: BotoCoreError, doing: str) -> ProviderError:
    for kind, failure, code, mend in _NOTHING_SENT:
        if isinstance(error, kind):
            return failure(
                code, f"Nothing could be sent to AWS to {doing} ({type(error).__name__}).", mend=mend
            )
    return ProviderFault("no_answer", f"AWS did not answer the request to {doing}.", mend=AGAIN)
