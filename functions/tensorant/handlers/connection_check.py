"""Checks a connection with its credentials. Never starts a machine."""

from __future__ import annotations

from typing import Any

from tensorant import bootstrap


def handler(event: dict[str, Any], _context: object) -> None:
    bootstrap.connection_checker().check(str(event["organization_id"]), str(event["connection_id"]))
