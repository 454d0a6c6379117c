"""Connections to compute and storage: their settings, what their check saw, and the GPU catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Literal

from tensorant.contract import ARCHIVE_NAME
from tensorant.domain.errors import Conflict
from tensorant.domain.storages import (
    RUNPOD_ABILITIES,
    S3_ABILITIES,
    RunPodStorageSettings,
    StorageAbilities,
)

ROLE_NAME_PREFIX = "tensorant-"
"""Of the roles that Tensorant may assume: its own rights end there."""

EXPIRY_WARNING = timedelta(hours=24)
"""How long before their end temporary credentials are warned of."""


class ConnectionKind(StrEnum):
    AWS = "aws"
    S3 = "s3"
    RUNPOD_STORAGE = "runpod_storage"

    @property
    def is_compute(self) -> bool:
        return self is ConnectionKind.AWS


class ConnectionStatus(StrEnum):
    CHECKING = "checking"
    CONNECTED = "connected"
    FAILED = "failed"
    REMOVED = "removed"


class CheckVerdict(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class ManagedBy(StrEnum):
    """Who keeps a connection: its organization's owners, or the deployment's platform admins."""

    ORGANIZATION = "organization"
    PLATFORM = "platform"


class CredentialKind(StrEnum):
    """How a connection to AWS proves who it is."""

    KEYS = "keys"
    """An access key, perhaps with a session token."""
    ROLE = "role"
    """A role in the customer's account, assumed with an external id that Tensorant made."""
    SAME_ACCOUNT = "same_account"
    """The deployment's own account; only for connections that the platform manages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckItem:
    """One thing that a check looked at: what was seen, and what to do about it."""

    name: str
    verdict: CheckVerdict
    seen: str
    mend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What will stand in a connection's way before long, and what to do about it."""

    code: str
    message: str
    mend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsSettings:
    """Where EC2 instances are to be made; everything but the credentials."""

    kind: Literal["aws"] = "aws"
    region: str
    image_id: str
    subnet_ids: tuple[str, ...]
    security_group_id: str
    key_name: str | None = None
    instance_profile_arn: str | None = None
    credentials: CredentialKind = CredentialKind.KEYS
    role_arn: str | None = None
    external_id: str | None = None
    """Made by Tensorant for a role; not a secret (AWS: "How to use an external ID")."""

    @property
    def role_account(self) -> str | None:
        """The account of the role, as its ARN says (arn:aws:iam::account:role/name); None without a role."""
        return self.role_arn.split(":")[4] if self.role_arn else None


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """A bucket, or a prefix of one, of AWS S3 or of a store that speaks its API. `endpoint_url` None: AWS S3."""

    kind: Literal["s3"] = "s3"
    region: str
    bucket: str
    prefix: str = ""
    endpoint_url: str | None = None
    addressing_style: Literal["virtual", "path"] = "virtual"


Settings = AwsSettings | S3Settings | RunPodStorageSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """What a launch must know of an AMI; an AMI never changes, so the check's reading holds."""

    root_device: str
    root_gib: int
    other_devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """`account_id` is the provider's own name of the account, as the credentials proved it."""

    id: str
    organization_id: str
    name: str
    settings: Settings
    status: ConnectionStatus
    created_at: datetime
    created_by: str
    checks: tuple[CheckItem, ...] = ()
    checked_at: datetime | None = None
    account_id: str | None = None
    image: ImageFacts | None = None
    subnet_zones: dict[str, str] = field(default_factory=dict)
    """The availability zone of each subnet, as the last check saw it."""
    abilities: StorageAbilities | None = None
    """What its storage can do, as the last good check found it; None for compute, and before such a check."""
    managed_by: ManagedBy = ManagedBy.ORGANIZATION
    credentials_expire_at: datetime | None = None
    """Of temporary credentials that Tensorant can't renew; None for all others."""
    removed_at: datetime | None = None
    """From here on nothing new is made with it; its record stays for the runs that used it."""
    purged_at: datetime | None = None
    """When the credentials of a removed one were deleted."""
    generation: int = 0
    """Counts the changes of settings and credentials: what was seen before one proves nothing after it."""
    version: int = 0

    @property
    def kind(self) -> ConnectionKind:
        return ConnectionKind(self.settings.kind)

    @property
    def usable(self) -> bool:
        """The last check that ended was good; another one under way changes nothing."""
        if self.status is not ConnectionStatus.CHECKING:
            return self.status is ConnectionStatus.CONNECTED
        failed = any(item.verdict is CheckVerdict.FAILED for item in self.checks)
        return self.checked_at is not None and not failed

    @property
    def removed(self) -> bool:
        return self.removed_at is not None

    def require_usable(self, *, named_by: str) -> None:
        """Raises `Conflict` unless something new can be made with it; `named_by` is the field that named it."""
        if self.removed:
            raise Conflict(
                "connection_removed",
                f"The connection {self.name} has been removed.",
                mend="Draft another run, with another connection.",
                field=named_by,
            )
        if not self.usable:
            raise Conflict(
                "connection_not_ready",
                f"The connection {self.name} is {self.status}, not connected.",
                mend="Check the connection and mend what it reports.",
                field=named_by,
            )

    @property
    def storage_abilities(self) -> StorageAbilities:
        """What its storage can do; before a check has looked, what its kind is documented to do."""
        volume = isinstance(self.settings, RunPodStorageSettings)
        return self.abilities or (RUNPOD_ABILITIES if volume else S3_ABILITIES)

    def archive_path(self, run_id: str) -> str:
        """Where a machine keeps the archive under its data directory (the seeds, "Recover your adapter")."""
        volume = isinstance(self.settings, RunPodStorageSettings)
        return f"runs/{run_id}/{ARCHIVE_NAME}" if volume else ARCHIVE_NAME

    # -- temporary credentials ---------------------------------------------------------------------------

    def warnings(self, now: datetime) -> tuple[Notice, ...]:
        """What its owners should know before it stands in their way."""
        expire_at = self.credentials_expire_at
        if expire_at is None or self.removed or now < expire_at - EXPIRY_WARNING:
            return ()
        mend = (
            "Replace them with credentials of the same account: without valid ones no machine can be watched, "
            "stopped or released."
        )
        if now < expire_at:
            message = f"The connection's temporary credentials expire at {_minute(expire_at)}."
            return (Notice(code="credentials_expire_soon", message=message, mend=mend),)
        message = f"The connection's temporary credentials have expired, at {_minute(expire_at)}."
        return (Notice(code="credentials_expired", message=message, mend=mend),)

    def expiry_item(self, now: datetime) -> CheckItem | None:
        """What a check says of how long the credentials last; None for those that do."""
        if self.credentials_expire_at is None:
            return None
        for each in self.warnings(now):
            expired = now >= self.credentials_expire_at
            verdict = CheckVerdict.FAILED if expired else CheckVerdict.WARNING
            return CheckItem(name="expiry", verdict=verdict, seen=each.message, mend=each.mend)
        seen = f"The connection's temporary credentials expire at {_minute(self.credentials_expire_at)}."
        return CheckItem(name="expiry", verdict=CheckVerdict.OK, seen=seen)

    def require_credentials_until(self, moment: datetime, *, named_by: str = "connection_id") -> None:
        """Raises `Conflict` if its credentials expire before, so that what was made could not be released or stored.

        `named_by` is the field that named the connection.
        """
        expire_at = self.credentials_expire_at
        if expire_at is not None and expire_at < moment:
            raise Conflict(
                "credentials_expire_early",
                f"The credentials of {self.name} expire at {_minute(expire_at)}; the run may need them until "
                f"{_minute(moment)}.",
                mend="Replace the connection's credentials with ones that last longer, or shorten the time limit.",
                field=named_by,
            )

    # -- its life ----------------------------------------------------------------------------------------

    def checking(self) -> Connection:
        """With a check started; what the last one saw stands until then. A removed one stays removed."""
        return self if self.removed else replace(self, status=ConnectionStatus.CHECKING)

    def checked(
        self,
        checks: tuple[CheckItem, ...],
        *,
        at: datetime,
        account_id: str | None = None,
        image: ImageFacts | None = None,
        subnet_zones: Mapping[str, str] | None = None,
        abilities: StorageAbilities | None = None,
    ) -> Connection:
        """With the result of a check: connected unless an item failed. A removed one stays removed."""
        if self.removed:
            return self
        failed = any(item.verdict is CheckVerdict.FAILED for item in checks)
        return replace(
            self,
            status=ConnectionStatus.FAILED if failed else ConnectionStatus.CONNECTED,
            checks=checks,
            checked_at=at,
            account_id=account_id or self.account_id,
            image=image or self.image,
            subnet_zones=self.subnet_zones if subnet_zones is None else dict(subnet_zones),
            abilities=abilities or self.abilities,
        )

    def check_unfinished(self, trouble: str, *, at: datetime) -> Connection:
        """After a check that got no answer: an earlier good one still counts, without one nothing is proven."""
        verdict = CheckVerdict.WARNING if self.usable else CheckVerdict.FAILED
        item = CheckItem(
            name="unfinished",
            verdict=verdict,
            seen=f"The check could not be finished: {trouble}",
            mend="Check the connection again in a few minutes.",
        )
        earlier = tuple(each for each in self.checks if each.name != "unfinished") if self.usable else ()
        return self.checked((*earlier, item), at=self.checked_at if self.usable and self.checked_at else at)

    def changed(self, *, name: str, settings: Settings) -> Connection:
        """With other settings, of which no check knows anything; another name alone changes nothing else."""
        renamed = replace(self, name=name)
        if settings == self.settings:
            return renamed
        moved = _role_account(settings) != _role_account(self.settings)
        account_id = None if moved else self.account_id
        return replace(renamed.unproven(), settings=settings, account_id=account_id)

    def pointed_at(self, account_id: str | None) -> Connection:
        """About to get credentials of this account (None: not known): of another, nothing stays proven."""
        if account_id in {None, self.account_id}:
            return replace(self, generation=self.generation + 1)
        return replace(self.unproven(), account_id=None)

    def awaiting_credentials(self, account_id: str | None, *, expire_at: datetime | None) -> Connection:
        """About to get other credentials: until it is certain whose are stored, the earlier end counts."""
        ends = [each for each in (self.credentials_expire_at, expire_at) if each is not None]
        return replace(self.pointed_at(account_id), credentials_expire_at=min(ends, default=None))

    def with_credentials(self, account_id: str | None, *, expire_at: datetime | None) -> Connection:
        """With other credentials, which a check has still to prove."""
        return replace(self.pointed_at(account_id), credentials_expire_at=expire_at).checking()

    def unproven(self) -> Connection:
        """As if it had never been checked."""
        return replace(
            self,
            status=ConnectionStatus.CHECKING,
            checks=(),
            checked_at=None,
            image=None,
            subnet_zones={},
            abilities=None,
            generation=self.generation + 1,
        )

    def remove(self, *, at: datetime) -> Connection:
        return replace(self, status=ConnectionStatus.REMOVED, removed_at=at)

    def purged(self, *, at: datetime) -> Connection:
        """Its credentials are deleted; only its record is left."""
        return replace(self, purged_at=at)


def _role_account(settings: Settings) -> str | None:
    return settings.role_account if isinstance(settings, AwsSettings) else None


def _minute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuType:
    """An instance type with one whole GPU that the trainer runs on. `usd_per_hour` None: price unknown."""

    instance_type: str
    gpu: str
    gpu_memory_mib: int
    vcpus: int
    memory_mib: int
    zones: tuple[str, ...] = ()
    usd_per_hour: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """The GPU types of a connection as its last check found them."""

    connection_id: str
    types: tuple[GpuType, ...]
    excluded: dict[str, str]
    """Types of the GPU families that can't be used, with the reason."""
    disk_usd_per_gib_month: Decimal | None
    priced_at: datetime
    version: int = 0

    @property
    def empty(self) -> bool:
        """Nothing is known: the connection has moved to another region since."""
        return not self.types and not self.excluded

    def emptied(self) -> Catalog:
        return replace(self, types=(), excluded={}, disk_usd_per_gib_month=None)

    def find(self, instance_type: str) -> GpuType | None:
        return next((each for each in self.types if each.instance_type == instance_type), None)
