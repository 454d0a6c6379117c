"""What unit tests share."""

from __future__ import annotations

import pytest

from tests.support.worlds import World


@pytest.fixture
def world() -> World:
    """An organization with everything that a run needs, at noon."""
    return World().settle()
