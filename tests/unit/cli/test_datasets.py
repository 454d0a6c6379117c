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
    dataset_report,
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
PREVIEW = f"GET {ORG}/dataset-versions/data-1/preview"
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


def test_content_that_is_known_is_used_as_the_version_it_is(
    terminal: Terminal, api: ScriptedApi, file: Path
) -> None:
    api.answer(CREATE, upload(), status=201)
    api.answer(PUT, b"")
    api.answer(COMPLETE, unread("validating"), status=202)
    api.answer(SHOW, dataset(same_as="data-0"))

    result = terminal.run("datasets", "upload", str(file), "--project", "proj-1")

    assert result.exit_code == 0
    assert "Same content as data-0: use that version" in squeezed(result.stdout)


@pytest.mark.parametrize(
    ("name", "called"),
    [("chats.jsonl.gz", "chats"), ("chats.jsonl.zst", "chats"), ("v1.2.json", "v1.2"), (".jsonl", ".jsonl")],
)
def test_a_version_is_called_as_its_file_without_endings(
    terminal: Terminal, api: ScriptedApi, tmp_path: Path, name: str, called: str
) -> None:
    path = tmp_path / name
    path.write_bytes(ROW)
    api.answer(CREATE, upload(), status=201)
    api.answer(PUT, b"")
    api.answer(COMPLETE, unread("validating"), status=202)
    api.answer(SHOW, dataset())

    terminal.run("datasets", "upload", str(path), "--project", "proj-1")

    assert api.sent(CREATE) == {"name": called}


def test_what_is_in_a_version_is_shown(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, dataset(report=dataset_report(tool_rows=3)))

    shown = squeezed(terminal.run("datasets", "show", "data-1").stdout)

    assert "Format chat" in shown
    assert "As it was brought 45.0 kB, compression: gzip" in shown
    assert "Tokens about 36,000" in shown
    assert "Tokens a row about 130 (half), 155 (90%), 170 (99%), 179 (longest)" in shown
    assert "Duplicate rows 2 among 270" in shown
    assert "Messages 270 system, 270 user, 270 assistant" in shown
    assert "Rows with tools 3" in shown
    assert "Fields not used source" in shown


def test_what_keeps_a_validation_from_its_end_is_shown(terminal: Terminal, api: ScriptedApi) -> None:
    trouble = fault(line=0, field="", message="The storage is away.", mend="Check the connection.")
    api.answer(SHOW, dataset(status="validating", report=None, trouble=trouble))

    shown = squeezed(terminal.run("datasets", "show", "data-1").stdout)

    assert shown[-2:] == ["Trouble The storage is away.", "Mend: Check the connection."]


def test_the_first_rows_are_shown_one_a_line(terminal: Terminal, api: ScriptedApi) -> None:
    rows = [{"text": "[bold]ä[/bold]"}, {"text": "x" * 300}]
    api.answer(PREVIEW, {"rows": rows, "more": True})

    result = terminal.run("datasets", "preview", "data-1", "--rows", "2")

    assert result.exit_code == 0
    assert [json.loads(line) for line in result.stdout.splitlines()] == rows
    [request] = api.requests
    assert request.url.params["rows"] == "2"


def test_fewer_rows_than_asked_are_explained(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(PREVIEW, {"rows": [{"text": "a"}], "more": True})

    assert "The rows are long" in terminal.run("datasets", "preview", "data-1").stderr


def test_a_preview_is_shown_as_json(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(PREVIEW, {"rows": [{"text": "a"}], "more": False})

    shown = terminal.run("datasets", "preview", "data-1", "--json").stdout

    assert json.loads(shown) == {"rows": [{"text": "a"}], "more": False}


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
