"""A customer's role, assumed with the external id of its connection; its sessions are renewed as long as they are used.

Source: IAM user guide, "Access to AWS accounts owned by third parties". A role that is assumed with a
role's own session lasts an hour at most (role chaining), so credentials are renewed and never stored.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from tensorant.adapters.ec2.errors import translated
from tensorant.adapters.ec2.signing import new_session, signed_with
from tensorant.domain.errors import Permission, ProviderError

PATIENT = Config(retries={"mode": "standard", "total_max_attempts": 3}, connect_timeout=5, read_timeout=15)

ANOTHER_ID = "0" * 32
"""An external id of the form that connections get, and that none has."""

SESSION_NAME_CHARACTERS = 64
"""At most (STS AssumeRole, RoleSessionName)."""


@dataclass(frozen=True, slots=True)
class Role:
    """Which role, with which external id, and under which name its account sees us."""

    arn: str
    external_id: str
    session_name: str


class AssumedRole:
    """One role, and the credentials of its present session; they are fetched when first used."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self._own = new_session()
        self._credentials = DeferredRefreshableCredentials(self._renewed, "tensorant-role")

    def session(self, region: str) -> boto3.Session:
        """A session whose requests are signed with the role; renewing may raise `ProviderError` from any of them."""
        return signed_with(self._credentials, region)

    def open_without_external_id(self) -> bool:
        """Whether the role lets us in without its external id, and so anybody who makes us ask (confused deputy).

        Any other id is tried as well: a condition that all of them meet guards nothing. Raises `ProviderError`
        if it stays open whether we are let in.
        """
        return self._lets_in(None) or self._lets_in(ANOTHER_ID)

    # -- inside ------------------------------------------------------------------------------------------

    def _lets_in(self, external_id: str | None) -> bool:
        try:
            self._fetcher(external_id=external_id).fetch_credentials()
        except (ClientError, BotoCoreError) as error:
            refused = translated(error, doing=f"assume {self.role.arn} without its external id")
            if isinstance(refused, Permission):
                return False
            raise refused from error
        return True

    def _renewed(self) -> dict[str, str]:
        try:
            found: dict[str, str] = self._fetcher(external_id=self.role.external_id).fetch_credentials()
        except (ClientError, BotoCoreError) as error:
            raise self._refusal(error) from error
        return found

    def _fetcher(self, *, external_id: str | None) -> AssumeRoleCredentialFetcher:
        own = self._own.get_credentials()
        if own is None:
            raise NoCredentialsError
        asked = {"RoleSessionName": self.role.session_name}
        return AssumeRoleCredentialFetcher(
            functools.partial(self._own.create_client, region_name=self._region(), config=PATIENT),
            own,
            self.role.arn,
            extra_args=asked if external_id is None else {**asked, "ExternalId": external_id},
        )

    def _region(self) -> str:
        """Our own region's STS: it is near, and it is there whatever regions the customer has enabled."""
        return self._own.get_config_variable("region") or "us-east-1"

    def _refusal(self, error: ClientError | BotoCoreError) -> ProviderError:
        refused = translated(error, doing=f"assume {self.role.arn}")
        if isinstance(refused, Permission):
            refused.mend = (
                f"Check that the role exists, and that its trust policy allows sts:AssumeRole to {self._us()} under "
                f"the condition StringEquals sts:ExternalId = {self.role.external_id}: the connector's template "
                "makes such a role."
            )
        return refused

    def _us(self) -> str:
        """Whom the trust policy must name."""
        try:
            sts: Any = self._own.create_client("sts", region_name=self._region(), config=PATIENT)
            return f"account {sts.get_caller_identity()['Account']}"
        except (ClientError, BotoCoreError):
            return "the account of this deployment"


@dataclass(frozen=True)
class AssumedRoles:
    """The roles that this process has assumed: a warm function uses their sessions again."""

    deployment_id: str = "tensorant"
    _known: dict[Role, AssumedRole] = field(default_factory=dict)

    def of(self, connection_id: str, *, arn: str, external_id: str) -> AssumedRole:
        """The customer's account sees sessions named by deployment and connection (in its CloudTrail)."""
        name = re.sub(r"[^\w+=,.@-]", "-", f"{self.deployment_id}-{connection_id}", flags=re.ASCII)
        role = Role(arn, external_id, name[:SESSION_NAME_CHARACTERS])
        if role not in self._known:
            self._known[role] = AssumedRole(role)
        return self._known[role]
