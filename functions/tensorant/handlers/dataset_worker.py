"""Validates an uploaded dataset version and copies it to the organization's storage."""

from __future__ import annotations

from typing import Any

from tensorant import bootstrap


def handler(event: dict[str, Any], _context: object) -> None:
    bootstrap.dataset_validator().validate(str(event["organization_id"]), str(event["version_id"]))
