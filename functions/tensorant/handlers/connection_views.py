"""What users receive of connections: settings, what a check saw, what to mind. Credentials have no place here."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Self

from pydantic import BaseModel

from tensorant.domain.connections import (
    Catalog,
    CheckItem,
    Connection,
    GpuType,
    ManagedBy,
    Notice,
    Settings,
)
from tensorant.domain.storages import StorageAbilities


class ConnectionView(BaseModel):
    """`credentials_expire_at` null: they last until they are replaced, or Tensorant renews them."""

    id: str
    name: str
    kind: str
    status: str
    settings: Settings
    checks: tuple[CheckItem, ...]
    checked_at: datetime | None
    account_id: str | None
    managed_by: ManagedBy = ManagedBy.ORGANIZATION
    credentials_expire_at: datetime | None = None
    warnings: tuple[Notice, ...] = ()
    abilities: StorageAbilities | None = None
    """What its storage can do; null for compute, and until a check has looked."""
    created_at: datetime

    @classmethod
    def of(cls, connection: Connection, *, now: datetime) -> Self:
        return cls(
            id=connection.id,
            name=connection.name,
            kind=connection.kind,
            status=connection.status,
            settings=connection.settings,
            checks=connection.checks,
            checked_at=connection.checked_at,
            account_id=connection.account_id,
            managed_by=connection.managed_by,
            credentials_expire_at=connection.credentials_expire_at,
            warnings=connection.warnings(now),
            abilities=connection.abilities,
            created_at=connection.created_at,
        )


class CatalogView(BaseModel):
    types: tuple[GpuType, ...]
    excluded: dict[str, str]
    disk_usd_per_gib_month: Decimal | None
    priced_at: datetime

    @classmethod
    def of(cls, catalog: Catalog) -> Self:
        return cls(
            types=catalog.types,
            excluded=catalog.excluded,
            disk_usd_per_gib_month=catalog.disk_usd_per_gib_month,
            priced_at=catalog.priced_at,
        )
