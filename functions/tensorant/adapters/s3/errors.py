"""S3's errors in the words of the domain, each translated once."""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError

from tensorant.domain.errors import Storage

ABSENT = {"404", "NoSuchKey", "NotFound"}
TAKEN = {"PreconditionFailed", "412"}
"""Answers to a write that must not replace anything (PutObject, "If-None-Match")."""

KEYS = "Replace the connection's credentials with valid ones."
RIGHTS = "Give the credentials the rights to list the bucket, and to read, write and delete under the prefix."
REGION = "Make the connection with the bucket's own region."
MENDS = {
    "InvalidAccessKeyId": KEYS,
    "SignatureDoesNotMatch": f"{KEYS} The secret does not belong to the access key id, or the region is wrong.",
    "ExpiredToken": KEYS,
    "InvalidToken": KEYS,
    "AccessDenied": RIGHTS,
    "403": RIGHTS,
    "NoSuchBucket": "Make the connection with a bucket that exists; Tensorant makes none.",
    "PermanentRedirect": REGION,
    "AuthorizationHeaderMalformed": REGION,
    "EndpointConnectionError": "Check the endpoint: nobody answered there.",
    "SSLError": "Check the endpoint: its certificate is not valid for this host.",
    "EntityTooLarge": "The store refuses objects of this size.",
}
MEND = "Check the storage connection: bucket, prefix, region and the rights of its credentials."

Trouble = (ClientError, BotoCoreError)


class NotReachedError(BotoCoreError):
    """Raised instead of connecting to an address that is not allowed. Never retried."""

    fmt = "{host} is not connected to: {reason}"

    def __init__(self, *, host: str, reason: str) -> None:
        super().__init__(host=host, reason=reason)
        self.host = host
        self.reason = reason


def code_of(error: ClientError | BotoCoreError) -> str:
    """S3's own code; of what never reached S3, the name of the error."""
    return error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__


def absent(error: ClientError | BotoCoreError) -> bool:
    return isinstance(error, ClientError) and code_of(error) in ABSENT


def taken(error: ClientError | BotoCoreError) -> bool:
    """Whether a write was refused since there is such an object already."""
    return isinstance(error, ClientError) and code_of(error) in TAKEN


def translated(error: ClientError | BotoCoreError, doing: str) -> Storage:
    if isinstance(error, NotReachedError):
        return Storage(
            "endpoint_not_allowed",
            f"The storage could not {doing}: {error.host} leads where nobody may connect for a customer, since "
            f"{error.reason}.",
            mend="Use an endpoint whose name leads to public addresses only, or ask an administrator to allow "
            "private storage for this deployment.",
        )
    code = code_of(error)
    return Storage("storage_failed", f"The storage could not {doing}: {code}.", mend=MENDS.get(code, MEND))
