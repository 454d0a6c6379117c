from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import ScriptedApi, Terminal

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """Signed in by its environment, in the organization org-1."""
    return Terminal(tmp_path)


@pytest.fixture
def api(terminal: Terminal) -> ScriptedApi:
    return terminal.api
