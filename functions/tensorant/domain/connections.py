"""Connections to compute and storage: their settings, what their check saw, and the GPU catalog."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Literal


class ConnectionKind(StrEnum):
    AWS = "aws"
    S3 = "s3"

    @property
    def is_compute(self) -> bool:
        return self is ConnectionKind.AWS


class ConnectionStatus(StrEnum):
    CHECKING = "checking"
    CONNECTED = "connected"
    FAILED = "failed"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """A bucket, or a prefix of one. `endpoint_url` is None for AWS S3."""

    kind: Literal["s3"] = "s3"
    region: str
    bucket: str
    prefix: str = ""
    endpoint_url: str | None = None
    addressing_style: Literal["virtual", "path"] = "virtual"


Settings = AwsSettings | S3Settings


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
    managed_by: ManagedBy = ManagedBy.ORGANIZATION
    credentials_expire_at: datetime | None = None
    """Of temporary credentials that Tensorant can't renew; None for all others."""
    removed_at: datetime | None = None
    """From here on nothing new is made with it; its record stays for the runs that used it."""
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

    def checking(self) -> Connection:
        return replace(self, status=ConnectionStatus.CHECKING)

    def checked(
        self,
        checks: tuple[CheckItem, ...],
        *,
        at: datetime,
        account_id: str | None = None,
        image: ImageFacts | None = None,
    ) -> Connection:
        """With the result of a check: connected unless an item failed."""
        failed = any(item.verdict is CheckVerdict.FAILED for item in checks)
        return replace(
            self,
            status=ConnectionStatus.FAILED if failed else ConnectionStatus.CONNECTED,
            checks=checks,
            checked_at=at,
            account_id=account_id or self.account_id,
            image=image or self.image,
        )


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

    def find(self, instance_type: str) -> GpuType | None:
        return next((each for each in self.types if each.instance_type == instance_type), None)
