"""Organizations, their members and who is asking."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tensorant.domain.errors import Forbidden


class Role(StrEnum):
    OWNER = "owner"
    MEMBER = "member"


@dataclass(frozen=True, slots=True)
class Actor:
    """An authenticated person: `subject` is the token's `sub`."""

    subject: str
    platform_admin: bool = False

    def require_platform_admin(self) -> None:
        """Raises `Forbidden` for anybody else."""
        if not self.platform_admin:
            raise Forbidden(
                "platform_admin_only",
                "Only a platform admin may do this.",
                mend="Ask an administrator of this deployment.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    id: str
    name: str
    created_at: datetime
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    organization_id: str
    subject: str
    role: Role
    created_at: datetime
    version: int = 0

    def require_owner(self) -> None:
        """Raises `Forbidden` for a plain member."""
        if self.role is not Role.OWNER:
            raise Forbidden(
                "owner_only", "Only an owner may do this.", mend="Ask an owner of the organization."
            )
