"""The ids used last, so that nobody needs to copy them. Nothing secret, nothing that must not be lost."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from tensorant_cli.private_files import write_private


class State:
    """Of one profile. `fingerprint` names the deployment: with another one, what was remembered is forgotten."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._path = path
        self._fingerprint = fingerprint
        self._body = self._read()

    @property
    def organization_id(self) -> str | None:
        found = self._body.get("organization_id")
        return str(found) if found else None

    def last(self, organization_id: str, key: str) -> str | None:
        """The id used last under this key in this organization."""
        found = self._body["organizations"].get(organization_id, {}).get(key)
        return str(found) if found else None

    def remember_organization(self, organization_id: str) -> None:
        self._body["organization_id"] = organization_id
        self._write()

    def remember(self, organization_id: str, key: str, value: str) -> None:
        ids = self._body["organizations"].setdefault(organization_id, {})
        if ids.get(key) != value:
            ids[key] = value
            self._write()

    def _read(self) -> dict[str, Any]:
        with contextlib.suppress(OSError, ValueError):
            body = json.loads(self._path.read_bytes())
            if isinstance(body, dict) and body.get("fingerprint") == self._fingerprint:
                return {**body, "organizations": dict(body.get("organizations") or {})}
        return {"fingerprint": self._fingerprint, "organizations": {}}

    def _write(self) -> None:
        """As well as it can: forgetting an id must not fail a command that has done its work."""
        with contextlib.suppress(OSError):
            write_private(self._path, self._body)
