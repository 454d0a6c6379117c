"""`ports.Accounts` on STS: whose access keys are, before they are stored."""

from __future__ import annotations

from collections.abc import Mapping

import boto3

from tensorant.adapters.ec2.clients import Clients
from tensorant.adapters.ec2.sessions import keys_session
from tensorant.adapters.ec2.signing import signed_by_us
from tensorant.domain.connections import AwsSettings, CredentialKind
from tensorant.domain.errors import Credentials

IDENTITY_REGION = "us-east-1"
"""STS in a region that an account has not enabled does not know the account's keys; this one is always enabled."""

_SESSION = "Paste access key id, secret access key and session token of one session, which has not expired."

_BLAMED = {
    "InvalidClientTokenId": (
        "access_key_id",
        "Check the access key id, and that the key is active; temporary keys (ASIA…) need their session token.",
    ),
    "UnrecognizedClientException": ("access_key_id", "Check the access key id, and that the key is active."),
    "SignatureDoesNotMatch": (
        "secret_access_key",
        "Paste the secret access key that was shown when this access key was made, or make another key.",
    ),
    "ExpiredToken": ("session_token", _SESSION),
    "ExpiredTokenException": ("session_token", _SESSION),
}
"""The field to blame for what STS says of given keys, and the mend (STS, common errors)."""


class StsAccounts:
    """GetCallerIdentity, which no policy can refuse."""

    def account_of(self, settings: AwsSettings, secret: Mapping[str, str]) -> str:
        """A role's account is in its ARN; it may exist only later."""
        match settings.credentials:
            case CredentialKind.ROLE if settings.role_account is not None:
                return settings.role_account
            case CredentialKind.KEYS:
                return self._account(keys_session(secret, IDENTITY_REGION))
            case _:
                return self._account(signed_by_us(IDENTITY_REGION))

    def _account(self, session: boto3.Session) -> str:
        try:
            return Clients(session, IDENTITY_REGION).account()
        except Credentials as refused:
            field, mend = _BLAMED.get(refused.code, ("access_key_id", refused.mend))
            raise Credentials(refused.code, refused.message, mend=mend, field=field) from refused
