"""Ending a run by hand from the command line."""

from __future__ import annotations

from tests.support.command_line import ORG, ScriptedApi, Terminal, problem, run

CANCEL = f"POST {ORG}/runs/run-1/cancel"
DISCARD = f"POST {ORG}/runs/run-1/discard"
RELEASE = f"POST {ORG}/runs/run-1/release"


def test_cancelling_says_what_becomes_of_the_disk(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(CANCEL, run(outcome="cancelled"), status=202)

    result = terminal.run("runs", "cancel", "run-1", "--discard")

    assert result.exit_code == 0
    assert "nothing is kept" in result.stdout
    assert api.sent(CANCEL) == {"keep_output": False}


def test_kept_output_is_told(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(CANCEL, run(outcome="needs_recovery"), status=202)

    result = terminal.run("runs", "cancel", "run-1", "--keep-output")

    assert "its disk is kept" in result.stdout
    assert api.sent(CANCEL) == {"keep_output": True}


def test_where_there_may_be_output_it_must_be_said(terminal: Terminal, api: ScriptedApi) -> None:
    asked = problem(code="keep_output_required", mend="Say keep_output: true or false.", field="keep_output")
    api.answer(CANCEL, asked, status=422)

    result = terminal.run("runs", "cancel", "run-1")

    assert result.exit_code == 1
    assert "Say keep_output" in result.stderr
    assert api.sent(CANCEL) == {"keep_output": None}


def test_discarding_asks_first(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(DISCARD, run(outcome="cancelled"), status=202)

    refused = terminal.run("runs", "discard", "run-1", typed="n\n")
    agreed = terminal.run("runs", "discard", "run-1", "--yes")

    assert (refused.exit_code, agreed.exit_code) == (1, 0)
    assert "is being released" in agreed.stdout


def test_a_pending_release_is_asked_for_again(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(RELEASE, run(outcome="succeeded"), status=202)

    assert "asked for again" in terminal.run("runs", "release", "run-1").stdout
