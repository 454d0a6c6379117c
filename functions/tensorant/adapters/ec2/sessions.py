"""Opening a connection to EC2 with its credentials: keys, a role, or the deployment's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import boto3

from tensorant.adapters.ec2.clients import Clients
from tensorant.adapters.ec2.compute import Ec2Compute
from tensorant.adapters.ec2.roles import AssumedRoles
from tensorant.adapters.ec2.signing import signed_by_us, signed_with_keys
from tensorant.domain.connections import AwsSettings, Connection, CredentialKind
from tensorant.domain.errors import Configuration, Credentials
from tensorant.ports import Compute, Secrets


@dataclass(frozen=True)
class Ec2Computes:
    """Opens a connection with its own credentials."""

    secrets: Secrets
    roles: AssumedRoles = field(default_factory=AssumedRoles)

    def open(self, connection: Connection) -> Compute:
        """Only keys are kept as a secret; a role and the deployment's own account need none."""
        settings = connection.settings
        if not isinstance(settings, AwsSettings):
            raise Configuration("not_aws", "The connection is not to AWS.", mend="Choose an AWS connection.")
        match settings.credentials:
            case CredentialKind.KEYS:
                secret = self.secrets.read(connection.id)
                return Ec2Compute(Clients(keys_session(secret, settings.region), settings.region))
            case CredentialKind.SAME_ACCOUNT:
                return Ec2Compute(Clients(signed_by_us(settings.region), settings.region))
            case CredentialKind.ROLE:
                return Ec2Compute(role_clients(connection.id, settings, self.roles))


def keys_session(secret: Mapping[str, str], region: str) -> boto3.Session:
    """With an access key, perhaps temporary. Raises `Credentials` if what is stored is none."""
    key_id, key = secret.get("access_key_id"), secret.get("secret_access_key")
    if not key_id or not key:
        raise Credentials(
            "credentials_missing",
            "The connection's stored credentials are not an access key.",
            mend="Replace the connection's credentials.",
        )
    return signed_with_keys(key_id, key, secret.get("session_token"), region)


def role_clients(connection_id: str, settings: AwsSettings, roles: AssumedRoles) -> Clients:
    """With the settings' role; their first request assumes it."""
    if not settings.role_arn or not settings.external_id:
        raise Configuration(
            "role_missing",
            "The connection names no role, or has no external id.",
            mend="Remove the connection and make it again with the ARN of the role.",
        )
    assumed = roles.of(connection_id, arn=settings.role_arn, external_id=settings.external_id)
    return Clients(assumed.session(settings.region), settings.region, role=assumed)
