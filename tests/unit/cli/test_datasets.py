"""A dataset version: created, sent to staging, completed, validated."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import (
    ORG,
    STORAGE,
    ScriptedApi,
    Terminal,
    dataset,
    fault,
    listed,
    project,
    squeezed,
    unread,
    upload,
)

if TYPE_CHECKING:
    from pathlib import Path

CREATE = f"POST {ORG}/projects/proj-1/dataset-versions"
PUT = "PUT /staging/data-1"
COMPLETE = f"POST {ORG}/dataset-versions/data-1/complete"
SHOW = f"GET {ORG}/dataset-versions/data-1"
ROW = b'{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "chats.jsonl"
    path.write_bytes(ROW * 5000)
    return path


def test_a_file_is_uploaded_completed_and_its_rows_told(
    terminal: Terminal, api: ScriptedApi, file: Path
) -> None:
    api.answer(f"GET {ORG}/projects", listed(project()))
    api.answer(CREATE, upload(), status=201)
    api.answer(PUT, b"")
    api.answer(COMPLETE, unread("validating"), status=202)
    api.answer(SHOW, unread("validating"), dataset())

    result = terminal.run("datasets", "upload", str(file))

    assert result.exit_code == 0
    assert api.calls() == [f"GET {ORG}/projects", CREATE, PUT, COMPLETE, SHOW, SHOW]
    assert api.sent(CREATE) == {"name": "chats"}
    assert "Project: proj-1 (the only one)." in result.stderr
    assert "Rows 270" in squeezed(result.stdout)
    assert "SHA-256 " + "d" * 64 in squeezed(result.stdout)


def test_storage_gets_the_file_whole_and_not_our_token(
    terminal: Terminal, api: ScriptedApi, file: Path
) -> None:
    api.answer(CREATE, upload(), status=201)
    api.answer(PUT, b"")
    api.answer(COMPLETE, unread("validating"), status=202)
    api.answer(SHOW, dataset())

    result = terminal.run("datasets", "upload", str(file), "--project", "proj-1")

    [put] = [each for each in api.requests if each.method == "PUT"]
    assert put.content == ROW * 5000
    assert put.headers["Content-Length"] == str(len(ROW) * 5000)
    assert "Transfer-Encoding" not in put.headers
    assert "Authorization" not in put.headers
    assert "c0ffee" not in result.output


def test_an_invalid_file_shows_its_faults_and_fails(terminal: Terminal, api: ScriptedApi, file: Path) -> None:
    api.answer(CREATE, upload(), status=201)
    api.answer(PUT, b"")
    api.answer(COMPLETE, unread("validating"), status=202)
    invalid = dataset(status="invalid", sha256=None, rows=None, bytes=None, faults=(fault(),))
    api.answer(SHOW, invalid)

    result = terminal.run("datasets", "upload", str(file), "--project", "proj-1")

    assert result.exit_code == 1
    [line] = [line for line in result.stdout.splitlines() if "robot" in line]
    assert line.split()[:2] == ["3", "messages[1].role"]
    assert "Use system, user, assistant or tool." in line


def test_a_refused_upload_names_the_storage_s_reason_and_is_not_completed(
    terminal: Terminal, api: ScriptedApi, file: Path
) -> None:
    api.answer(CREATE, upload(), status=201)
    api.answer(PUT, b"<Error><Code>AccessDenied</Code><Message>Expired</Message></Error>", status=403)

    result = terminal.run("datasets", "upload", str(file), "--project", "proj-1")

    assert result.exit_code == 1
    assert f"The storage at {STORAGE} answered 403 (AccessDenied)." in result.stderr
    assert "c0ffee" not in result.output
    assert COMPLETE not in api.calls()


def test_a_file_that_is_not_there_is_told_before_anything_is_made(
    terminal: Terminal, api: ScriptedApi
) -> None:
    result = terminal.run("datasets", "upload", "nowhere.jsonl")

    assert result.exit_code == 2
    assert api.requests == []


def test_versions_are_listed_and_shown_as_json(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(f"GET {ORG}/projects/proj-1/dataset-versions", listed(dataset(), unread("uploading")))
    api.answer(SHOW, dataset())

    lines = terminal.run("datasets", "list", "--project", "proj-1").stdout.splitlines()
    shown = terminal.run("datasets", "show", "data-1", "--json")

    assert lines[1].split()[:5] == ["data-1", "chats", "valid", "270", "181.0"]
    assert lines[2].split()[:5] == ["data-1", "chats", "uploading", "-", "-"]
    assert json.loads(shown.stdout)["rows"] == 270
