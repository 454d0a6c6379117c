"""`ports.Secrets` on AWS Secrets Manager, and the deployment key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from tensorant.domain.errors import Credentials, ProviderFault

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient


@dataclass(frozen=True)
class SecretsManager:
    """One secret a connection, named by the deployment's prefix and the connection's id."""

    client: SecretsManagerClient
    prefix: str

    def write(self, connection_id: str, secret: Mapping[str, str]) -> None:
        name, text = self._name(connection_id), json.dumps(dict(secret))
        try:
            self._put(name, text)
        except (ClientError, BotoCoreError) as error:
            raise _fault("write") from error

    def _put(self, name: str, text: str) -> None:
        try:
            self.client.create_secret(Name=name, SecretString=text)
        except self.client.exceptions.ResourceExistsException:
            self.client.put_secret_value(SecretId=name, SecretString=text)

    def read(self, connection_id: str) -> Mapping[str, str]:
        try:
            text = self.client.get_secret_value(SecretId=self._name(connection_id))["SecretString"]
        except self._gone as error:
            raise Credentials(
                "credentials_missing",
                "The connection's credentials are no longer stored.",
                mend="Save the connection's credentials again.",
            ) from error
        except (ClientError, BotoCoreError) as error:
            raise _fault("read") from error
        return {str(name): str(each) for name, each in json.loads(text).items()}

    def delete(self, connection_id: str) -> None:
        """Secrets Manager keeps it for a week, in which an administrator can restore it."""
        try:
            self.client.delete_secret(SecretId=self._name(connection_id), RecoveryWindowInDays=7)
        except self._gone:
            return
        except (ClientError, BotoCoreError) as error:
            raise _fault("delete") from error

    @property
    def _gone(self) -> tuple[type[ClientError], ...]:
        """Not there, or marked for deletion: both requests answer InvalidRequestException only for the latter."""
        answers = self.client.exceptions
        return answers.ResourceNotFoundException, answers.InvalidRequestException

    def _name(self, connection_id: str) -> str:
        return f"{self.prefix}/{connection_id}"


def deployment_key(client: SecretsManagerClient, arn: str) -> bytes:
    """The key that machines' tokens are derived from."""
    try:
        return client.get_secret_value(SecretId=arn)["SecretString"].encode()
    except (ClientError, BotoCoreError) as error:
        raise _fault("read") from error


def _fault(doing: str) -> ProviderFault:
    return ProviderFault("secret_failed", f"Secrets Manager could not {doing} the secret.", mend="Try again.")
