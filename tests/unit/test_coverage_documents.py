"""The maps from a connector's guide to what shows it: each module and each test that they name exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted((ROOT / "docs" / "connectors").glob("*-coverage.md"))
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
MODULE = re.compile(r"`((?:functions|infra|cli|local|statemachines)/[\w/.-]+)`")
ELSEWHERE = ("not built yet", "unverified.md")
"""What a row may say instead of a test: it is still to come, or only a real account can show it."""


def rows(document: Path) -> list[str]:
    """Rows of its tables, heads and rules left out."""
    lines = [line for line in document.read_text().splitlines() if line.startswith("| ")]
    return [line for line in lines if not line.startswith("| What the guide says")]


@cache
def defined_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_there_is_a_map_of_the_aws_guide() -> None:
    assert [each.name for each in DOCUMENTS] == ["aws-coverage.md"]
    assert len(rows(DOCUMENTS[0])) > 40


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_test_that_a_map_names_exists(document: Path) -> None:
    missing = [
        f"{path}::{name}"
        for path, name in TEST.findall(document.read_text())
        if not (ROOT / path).is_file() or name not in defined_in(ROOT / path)
    ]

    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_module_that_a_map_names_exists(document: Path) -> None:
    missing = [path for path in MODULE.findall(document.read_text()) if not (ROOT / path).exists()]

    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_sentence_is_shown_or_said_to_be_open(document: Path) -> None:
    bare = [row for row in rows(document) if not TEST.search(row) and not any(e in row for e in ELSEWHERE)]

    assert bare == []
