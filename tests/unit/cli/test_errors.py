"""Errors are told as what, where and the mend, on stderr, with exit code 1."""

from __future__ import annotations

import httpx

from tests.support.command_line import API, ORG, ScriptedApi, Terminal, listed, problem, run

RUNS = f"GET {ORG}/runs"


def test_an_error_is_told_with_its_field_and_its_mend(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(RUNS, problem(), status=422)

    result = terminal.run("runs", "list")

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "Error (instance_types[0]): p5.48xlarge can't be used: it has 8 GPUs.",
        "Mend: Choose one of g6.xlarge.",
        "Request id: request-7",
    ]


def test_every_fault_of_a_request_is_told(terminal: Terminal, api: ScriptedApi) -> None:
    more = problem(field="name", message="name: Field required.", mend="Add the field.")["error"]
    api.answer(RUNS, {**problem(), "also": [more]}, status=422)

    result = terminal.run("runs", "list")

    assert "Error (instance_types[0]): " in result.stderr
    assert "Error: name: Field required.\nMend: Add the field." in result.stderr


def test_a_gateway_that_refuses_the_token_says_how_to_sign_in(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(RUNS, {"message": "Unauthorized"}, status=401)

    result = terminal.run("runs", "list")

    assert result.exit_code == 1
    assert f"Error: {API} answered 401 Unauthorized." in result.stderr
    assert "Mend: Sign in again: tensorant login." in result.stderr


def test_reading_is_repeated_after_faults_that_pass(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(RUNS, httpx.ConnectError("refused"))
    api.answer(RUNS, {"message": "Service Unavailable"}, status=503)
    api.answer(RUNS, listed(run()))

    result = terminal.run("runs", "list")

    assert result.exit_code == 0
    assert "run-1" in result.stdout
    assert terminal.slept == [0.5, 1.0]


def test_reading_gives_up_in_the_end(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(RUNS, httpx.ConnectError("refused"))

    result = terminal.run("runs", "list")

    assert result.exit_code == 1
    assert f"Error: {API} does not answer (ConnectError)." in result.stderr
    assert "tensorant local up" in result.stderr
    assert len(api.requests) == 4


def test_a_fault_that_stays_is_told_in_the_api_s_words(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(RUNS, problem(field=None, message="EC2 did not answer.", mend="Try again."), status=503)

    result = terminal.run("runs", "list")

    assert "Error: EC2 did not answer.\nMend: Try again." in result.stderr
    assert len(api.requests) == 4


def test_changing_is_never_repeated(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(f"POST {ORG}/projects", httpx.ReadTimeout("slow"))

    result = terminal.run("projects", "create", "Assistant", "--storage-connection-id", "conn-1")

    assert result.exit_code == 1
    assert "The request may have been carried out: look before you repeat it." in result.stderr
    assert api.calls() == [f"POST {ORG}/projects"]


def test_an_answer_of_something_else_is_not_taken_for_the_api_s(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(RUNS, b"<html>Welcome to this network</html>")

    result = terminal.run("runs", "list")

    assert result.exit_code == 1
    assert "answered something else than Tensorant's API does" in result.stderr


def test_text_from_elsewhere_does_not_steer_the_terminal(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(RUNS, problem(message="\x1b[2Jgone [red]not a colour[/red]"), status=409)

    result = terminal.run("runs", "list")

    assert "\x1b" not in result.stderr
    assert "[2Jgone [red]not a colour[/red]" in result.stderr


def test_an_id_that_is_none_is_refused_before_it_becomes_a_path(terminal: Terminal, api: ScriptedApi) -> None:
    result = terminal.run("runs", "show", "../../me")

    assert result.exit_code == 1
    assert "'../../me' is not an id." in result.stderr
    assert api.requests == []


def test_json_is_the_api_s_own_unknown_fields_included(terminal: Terminal, api: ScriptedApi) -> None:
    newer = {**run().model_dump(mode="json"), "labels": ["new"]}
    api.answer(RUNS, {"items": [newer]})

    result = terminal.run("runs", "list", "--json")

    assert '"labels": [\n        "new"\n      ]' in result.stdout
    assert result.stderr == ""
