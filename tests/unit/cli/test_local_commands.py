"""Local mode is an extra: without it, its commands say how to get it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def installed() -> Iterator[list[object]]:
    """Stand-ins for local mode's two entries; what they were called with."""
    calls: list[object] = []
    before = {name: sys.modules.get(name) for name in ("tensorant_local.up", "tensorant_local.demo")}
    up, demo = ModuleType("tensorant_local.up"), ModuleType("tensorant_local.demo")

    def start(*, model: str) -> None:
        calls.append(("up", model))

    def show(*, model: str) -> int:
        calls.append(("demo", model))
        return 3

    vars(up)["main"], vars(demo)["main"] = start, show
    sys.modules |= {"tensorant_local.up": up, "tensorant_local.demo": demo}
    yield calls
    for name, module in before.items():
        if module is None:
            del sys.modules[name]
        else:
            sys.modules[name] = module


def test_the_entries_of_local_mode_are_called(terminal: Terminal, installed: list[object]) -> None:
    up = terminal.run("local", "up")
    demo = terminal.run("demo", "--model", "tiny")

    assert installed == [("up", "smollm2"), ("demo", "tiny")]
    assert (up.exit_code, demo.exit_code) == (0, 3)


def test_without_the_extra_its_installation_is_the_mend(terminal: Terminal) -> None:
    hidden = {name: module for name, module in sys.modules.items() if name.startswith("tensorant_local")}
    finder = Missing()
    for name in hidden:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        result = terminal.run("demo")
    finally:
        sys.meta_path.remove(finder)
        sys.modules |= hidden

    assert result.exit_code == 1
    assert "Error: Local mode is not installed: tensorant_local is missing." in result.stderr
    assert "pip install 'tensorant[cli,local,infra]'" in result.stderr


class Missing:
    """A Python in which local mode was never installed."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name.partition(".")[0] == "tensorant_local":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
