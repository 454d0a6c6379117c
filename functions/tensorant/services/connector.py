"""What a customer puts into its own account: the policy of a connection, and the connector with it."""

from __future__ import annotations

from dataclasses import dataclass

from tensorant.connector.policy import Document, assumed_role_arn, policy
from tensorant.connector.template import CustomerBus, template
from tensorant.domain.connections import AwsSettings, Connection, CredentialKind
from tensorant.domain.errors import Conflict, Invalid, NotFound
from tensorant.domain.identity import Actor
from tensorant.services.access import member_of
from tensorant.services.connections import ConnectionReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a document is to hold besides the least that a connection needs; see `connector.policy`."""

    quota: bool = False
    checks: bool = False
    profile_role_arn: str | None = None
    account_id: str | None = None
    """Where a connection's account is not known yet: it is with the first check that ends well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A document, for which account and region it is, and what was assumed in it."""

    document: Document
    account_id: str
    region: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Connector:
    """Documents for members to hand to their AWS administrators. They hold no secret."""

    reader: ConnectionReader
    bus: CustomerBus

    def policy(self, actor: Actor, organization_id: str, connection_id: str, wanted: Wanted) -> Made:
        """The policy of a connection's identity. Raises `Conflict` while its account is not known."""
        connection = self.reader.show(actor, organization_id, connection_id)
        settings = _aws_settings(connection)
        return _policy(settings, self._account_of(connection, settings, wanted.account_id), wanted)

    def policy_for(
        self, actor: Actor, organization_id: str, settings: AwsSettings, account_id: str, wanted: Wanted
    ) -> Made:
        """The policy for a connection that is still to be made."""
        member_of(organization_id, actor, store=self.reader.store)
        return _policy(settings, account_id, wanted)

    def template(self, actor: Actor, organization_id: str, connection_id: str, wanted: Wanted) -> Made:
        """The connector as a CloudFormation template. Raises `Conflict` where there is nothing to deploy."""
        connection = self.reader.show(actor, organization_id, connection_id)
        settings = _aws_settings(connection)
        made = _policy(settings, self._account_of(connection, settings, wanted.account_id), wanted)
        document = template(settings, made.account_id, made.document, bus=self.bus)
        if not document["Resources"]:
            raise Conflict(
                "nothing_to_deploy",
                f"The connection {connection.name} uses the deployment's own account and region, which need no "
                "connector.",
                mend="Nothing to do: the deployment hears its own events and has its own rights.",
            )
        return Made(document=document, account_id=made.account_id, region=made.region, notes=made.notes)

    def _account_of(self, connection: Connection, settings: AwsSettings, told: str | None) -> str:
        known = connection.account_id or self._by_settings(settings)
        if known is None and told is None:
            raise Conflict(
                "account_unknown",
                f"The account of the connection {connection.name} is not known before a check has ended well.",
                mend="Name it with account_id, twelve digits.",
                field="account_id",
            )
        if known and told and known != told:
            raise Invalid(
                "other_account",
                f"The connection {connection.name} is to account {known}, not {told}.",
                mend="Leave account_id out.",
                field="account_id",
            )
        return known or told or ""

    def _by_settings(self, settings: AwsSettings) -> str | None:
        if settings.credentials is CredentialKind.SAME_ACCOUNT:
            return self.bus.account_id
        return settings.role_arn.split(":")[4] if settings.role_arn else None


def _policy(settings: AwsSettings, account_id: str, wanted: Wanted) -> Made:
    document = policy(
        settings,
        account_id,
        quota=wanted.quota,
        checks=wanted.checks,
        profile_role_arn=wanted.profile_role_arn,
    )
    return Made(
        document=document, account_id=account_id, region=settings.region, notes=_notes(settings, wanted)
    )


def _notes(settings: AwsSettings, wanted: Wanted) -> tuple[str, ...]:
    if not settings.instance_profile_arn or wanted.profile_role_arn:
        return ()
    assumed = assumed_role_arn(settings.instance_profile_arn)
    note = f"The role inside the instance profile was taken to be {assumed}; if it is another, give its ARN"
    return (f"{note} as profile_role_arn.",)


def _aws_settings(connection: Connection) -> AwsSettings:
    if not isinstance(connection.settings, AwsSettings):
        raise NotFound("AWS connection", connection.id)
    return connection.settings
