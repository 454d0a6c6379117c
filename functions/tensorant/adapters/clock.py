"""The system's clock and identifiers."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class RandomIds:
    def new(self, kind: str) -> str:
        return f"{kind}-{secrets.token_hex(8)}"

    def external_id(self) -> str:
        return secrets.token_hex(16)
