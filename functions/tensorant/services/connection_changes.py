"""Changing a connection: other credentials, other settings. Nothing that depends on it may be cut off by that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from tensorant.domain.connections import AwsSettings, Connection, CredentialKind, Settings
from tensorant.domain.errors import Conflict, Credentials, Invalid
from tensorant.domain.identity import Actor
from tensorant.ports import Accounts, Secrets, Store, Workers
from tensorant.services.access import connection_kept_by
from tensorant.services.conflicts import until_settled
from tensorant.services.connection_use import use_of


@dataclass(frozen=True)
class ConnectionChanges:
    """What its keeper may do to a connection that stands."""

    store: Store
    secrets: Secrets
    accounts: Accounts
    workers: Workers

    # -- credentials -------------------------------------------------------------------------------------

    def replace_credentials(
        self,
        actor: Actor,
        organization_id: str,
        connection_id: str,
        *,
        secret: Mapping[str, str],
        expire_at: datetime | None = None,
    ) -> Connection:
        """Store other credentials and check with them.

        Raises `Invalid` for credentials that AWS does not know, and `Conflict` for those of an account that
        could not release what has been made; then nothing is stored. The record is written before the secret,
        so that an ask under way with the old credentials fails, and once more after it, so that a check that
        read the old ones meanwhile proves nothing.
        """
        connection = connection_kept_by(actor, organization_id, connection_id, store=self.store)
        account_id = self._account_of(connection, secret)

        def announce() -> Connection:
            present = connection_kept_by(actor, organization_id, connection_id, store=self.store)
            if account_id is not None:
                use = use_of(present, store=self.store)
                use.require_account(present, account_id, field="access_key_id")
            announced = present.awaiting_credentials(account_id, expire_at=expire_at)
            self.store.commit(announced)
            return announced

        def settle() -> Connection:
            present = connection_kept_by(actor, organization_id, connection_id, store=self.store)
            if present.generation != announced.generation:
                raise _changed_by_another(present)
            replaced = present.with_credentials(account_id, expire_at=expire_at)
            self.store.commit(replaced)
            return replaced

        announced = until_settled(announce)
        try:
            self.secrets.write(connection_id, secret)
            return until_settled(settle)
        finally:  # whatever became of it: the check finds out whose credentials are stored
            self.workers.check_connection(organization_id, connection_id)

    def _account_of(self, connection: Connection, secret: Mapping[str, str]) -> str | None:
        """Whose the new credentials are; None for storage, where no machine depends on it."""
        settings = connection.settings
        if not isinstance(settings, AwsSettings):
            return None
        if settings.credentials is not CredentialKind.KEYS:
            raise Conflict(
                "no_keys",
                f"The connection {connection.name} has no keys to replace: Tensorant makes its sessions itself.",
                mend="Change its role (role_arn), or make a connection with keys.",
            )
        try:
            return self.accounts.account_of(settings, secret)
        except Credentials as refused:
            raise Invalid(refused.code, refused.message, mend=refused.mend, field=refused.field) from refused

    # -- settings ----------------------------------------------------------------------------------------

    def change(
        self, actor: Actor, organization_id: str, connection_id: str, changes: Mapping[str, Any]
    ) -> Connection:
        """Store another name and other settings (by their names), and check them; the rest stays.

        Another name alone needs no check. Raises `Invalid` for what this kind of connection can't change, and
        `Conflict` for what would cut off a run or a machine.
        """

        def save() -> tuple[Connection, Connection]:
            present = connection_kept_by(actor, organization_id, connection_id, store=self.store)
            changed = present.changed(
                name=changes.get("name", present.name), settings=_changed(present.settings, changes)
            )
            self._require_allowed(present, changed)
            self._commit(present, changed)
            return present, changed

        before, changed = until_settled(save)
        if changed.generation != before.generation:
            self.workers.check_connection(organization_id, connection_id)
        return changed

    def _require_allowed(self, before: Connection, after: Connection) -> None:
        old, new = before.settings, after.settings
        if not isinstance(old, AwsSettings) or not isinstance(new, AwsSettings):
            return
        moved, re_pointed = old.region != new.region, old.role_account != new.role_account
        if not moved and not re_pointed:
            return
        use = use_of(before, store=self.store)
        if moved:
            use.require_none(before, wanted=f"moved to {new.region}", field="region")
        if re_pointed and new.role_account is not None:
            use.require_account(before, new.role_account, field="role_arn")

    def _commit(self, before: Connection, after: Connection) -> None:
        """Another region has other types at other prices: the catalog of the old one goes with it."""
        moved = _region(before.settings) != _region(after.settings)
        catalog = self.store.catalog(before.id) if moved else None
        if catalog is None:
            self.store.commit(after)
        else:
            self.store.commit(after, catalog.emptied())


def _changed(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """The settings with the changes. Raises `Invalid` for one that they can't take."""
    wanted = {name: value for name, value in changes.items() if name != "name"}
    if not wanted:
        return settings
    if not isinstance(settings, AwsSettings):
        raise Invalid(
            "not_changeable",
            "Where a storage connection points to can't be changed: its projects' files lie there.",
            mend="Change its name only, or make another connection.",
            field=next(iter(wanted)),
        )
    if "role_arn" in wanted and settings.credentials is not CredentialKind.ROLE:
        raise Invalid(
            "no_role",
            "This connection does not use a role.",
            mend="Leave role_arn out, or make a connection with credentials of kind role.",
            field="role_arn",
        )
    return replace(settings, **wanted)


def _region(settings: Settings) -> str | None:
    return settings.region if isinstance(settings, AwsSettings) else None


def _changed_by_another(connection: Connection) -> Conflict:
    return Conflict(
        "credentials_in_doubt",
        f"Somebody else changed the connection {connection.name} at the same time: whose credentials are stored "
        "is not certain.",
        mend="Replace the credentials once more.",
    )
