"""How connections are shown: their settings, whose credentials they have, what their check saw."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from tensorant_cli.formats import NONE, duration, gib, usd_per_hour, utc, with_mend, words
from tensorant_cli.models import Catalog, CheckItem, Connection, GpuType
from tensorant_cli.output import facts, table

TOLD_APART = frozenset({"kind", "credentials", "role_arn", "external_id"})
"""Settings that have lines of their own."""


def connection_view(connection: Connection, *, now: datetime) -> RenderableType:
    """Everything that is known of a connection; its credentials never are."""
    parts: list[RenderableType] = [facts(_facts(connection, now))]
    if connection.warnings:
        rows = [(with_mend(each.message, each.mend),) for each in connection.warnings]
        parts += [Text(), table(None, ("Warnings",), rows)]
    if connection.checks:
        parts += [Text(), checks_table(connection.checks)]
    return Group(*parts)


def checks_table(checks: list[CheckItem]) -> RenderableType:
    """What was seen, and below it what to do."""
    rows = [(words(each.name), each.verdict, with_mend(each.seen, each.mend)) for each in checks]
    return table(None, ("Check", "Verdict", "Seen"), rows)


def connections_table(connections: list[Connection]) -> RenderableType:
    rows = [
        (each.id, each.kind, each.name, each.status, each.managed_by, utc(each.checked_at))
        for each in connections
    ]
    return table(None, ("Id", "Kind", "Name", "Status", "Managed by", "Checked"), rows)


def catalog_table(catalog: Catalog) -> RenderableType:
    """The usable types, the cheapest first, those without a price last."""

    def price(each: GpuType) -> tuple[bool, Decimal, str]:
        return (each.usd_per_hour is None, each.usd_per_hour or Decimal(0), each.instance_type)

    rows = [
        (
            each.instance_type,
            each.gpu,
            gib(each.gpu_memory_mib),
            str(each.vcpus),
            gib(each.memory_mib),
            usd_per_hour(each.usd_per_hour),
            ", ".join(each.zones),
        )
        for each in sorted(catalog.types, key=price)
    ]
    return table(None, ("Type", "GPU", "GPU memory", "vCPUs", "Memory", "Price", "Zones"), rows)


def _facts(connection: Connection, now: datetime) -> dict[str, str]:
    return {
        "Connection": connection.id,
        "Name": connection.name,
        "Kind": connection.kind,
        "Status": connection.status,
        "Account": connection.account_id or NONE,
        "Managed by": f"the {connection.managed_by}",
        **_credentials(connection, now),
        "Checked": utc(connection.checked_at),
        **_settings(connection.settings),
    }


def _credentials(connection: Connection, now: datetime) -> dict[str, str]:
    """Whose they are and how long they last."""
    settings = connection.settings
    match settings.get("credentials"):
        case "role":
            return {
                "Credentials": f"the role {settings.get('role_arn')}",
                "External id": str(settings.get("external_id") or NONE),
            }
        case "same_account":
            return {"Credentials": "the deployment's own"}
    if connection.credentials_expire_at is None:
        return {"Credentials": "an access key"}
    return {
        "Credentials": "a temporary access key",
        "Expires": f"{utc(connection.credentials_expire_at)} ({_left(connection.credentials_expire_at, now)})",
    }


def _left(until: datetime, now: datetime) -> str:
    seconds = (until - now).total_seconds()
    return f"in {duration(seconds)}" if seconds > 0 else f"{duration(-seconds)} ago"


def _settings(settings: dict[str, Any]) -> dict[str, str]:
    return {
        name: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in settings.items()
        if value and name not in TOLD_APART
    }
