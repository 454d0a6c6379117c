"""Who may do what."""

from __future__ import annotations

import pytest

from tensorant.domain.errors import Forbidden
from tensorant.domain.identity import Member, Role
from tests.support.worlds import ADMIN, NOON, ORG, OWNER


def test_only_platform_admins_are_platform_admins() -> None:
    ADMIN.require_platform_admin()
    with pytest.raises(Forbidden):
        OWNER.require_platform_admin()


def test_a_member_is_no_owner() -> None:
    Member(organization_id=ORG, subject="olga", role=Role.OWNER, created_at=NOON).require_owner()
    with pytest.raises(Forbidden):
        Member(organization_id=ORG, subject="mia", role=Role.MEMBER, created_at=NOON).require_owner()
