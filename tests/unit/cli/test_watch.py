"""Watching a run: each change once in plain text, the three facts at the end, the exit code for scripts."""

from __future__ import annotations

import io

import httpx
from rich.console import Console

from tensorant.contract import ArchiveDigest, VerificationReport
from tensorant.domain.machines import Disposition, Seen
from tensorant_cli.client import ApiClient
from tensorant_cli.watching import watch
from tests.support.command_line import (
    API,
    NOON,
    ORG,
    TOKEN,
    ScriptedApi,
    Terminal,
    machine,
    progress,
    retirement,
    run,
    squeezed,
    status,
    trainer_killed,
)

SHOW = f"GET {ORG}/runs/run-1"


def released() -> object:
    gone = machine("released", seen=Seen.GONE, disposition=Disposition.VERIFIED, confirmed_gone_at=NOON)
    digest = ArchiveDigest(size=9_800_000, sha256="a" * 64)
    report = VerificationReport(sound=True, archive=digest, tensors=420, parameters=2_442_240)
    return status("ended", outcome="succeeded", machine=gone, report=report)


def a_good_run() -> list[object]:
    running = machine("running")
    return [
        status("launching"),
        status("launching"),
        status("booting", machine=running, progress=progress("booting")),
        status("training", machine=running, progress=progress("training", 1, 4.9)),
        status("training", machine=running, progress=progress("training", 2, 4.7)),
        status("training", machine=running, progress=progress("training", 3, 4.5)),
        status("training", machine=running, progress=progress("training", 20, 1.2)),
        status("releasing", outcome="succeeded", machine=machine("releasing")),
        released(),
    ]


def test_plain_text_has_a_line_for_each_change_and_ends_with_the_facts(
    terminal: Terminal, api: ScriptedApi
) -> None:
    api.answer(SHOW, *a_good_run())

    result = terminal.run("runs", "watch", "run-1")

    assert result.exit_code == 0
    assert squeezed(result.stdout) == [
        "12:00:00 launching $0.0123 so far",
        "12:00:00 booting machine running $0.0123 so far",
        "12:00:00 training step 1/40, loss 4.9, 3 min 15 s left machine running $0.0123 so far",
        "12:00:00 training step 20/40, loss 1.2, 1 min 40 s left machine running $0.0123 so far",
        "12:00:00 releasing succeeded machine releasing $0.0123 so far",
        "12:00:00 ended succeeded machine released $0.0123 so far",
        "State Details",
        "Outcome succeeded",
        "Machine released g6.xlarge i-0123456789abcdef0: the provider confirmed it at 2026-03-01 12:00:00 UTC",
        "Cost $0.0123 quoted $0.8138/h",
        "Adapter verified 9.8 MB, 420 tensors, 2,442,240 parameters",
    ]
    assert terminal.slept == [2.0] * 8


def test_a_warning_is_told_once(terminal: Terminal, api: ScriptedApi) -> None:
    warned = status("training", machine=machine("running"), warnings=[retirement()])
    api.answer(SHOW, status("training", machine=machine("running")), warned, warned, released())

    lines = terminal.run("runs", "watch", "run-1").stdout.splitlines()

    told = [line for line in lines if "warning" in line]
    assert told == ["12:00:00  warning: EC2 will stop the machine. Let the run finish before."]


def test_a_run_that_needs_recovery_says_why_and_fails(terminal: Terminal, api: ScriptedApi) -> None:
    stopping = machine("stopping")
    retained = machine("retained", seen=Seen.STOPPED, confirmed_stopped_at=NOON)
    api.answer(SHOW, status("stopping", outcome="needs_recovery", machine=stopping, failure=trainer_killed()))
    api.answer(SHOW, status("ended", outcome="needs_recovery", machine=retained, failure=trainer_killed()))

    result = terminal.run("runs", "watch", "run-1")

    assert result.exit_code == 1
    lines = squeezed(result.stdout)
    assert (
        "Outcome needs recovery lost (trainer_exited): The trainer ended with exit code 137. "
        "Recover its adapter or discard it." in lines
    )
    [line] = [each for each in lines if each.startswith("Machine")]
    assert line.startswith("Machine retained g6.xlarge i-0123456789abcdef0: stopped, confirmed at 2026-03-01")
    assert line.endswith("its disk is kept and costs money")


def test_a_draft_is_not_watched(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, status("draft", run=run(launched_at=None)))

    result = terminal.run("runs", "watch", "run-1")

    assert result.exit_code == 1
    assert "Launch it first: tensorant runs launch run-1." in result.stderr


def test_stopping_to_watch_says_that_the_run_goes_on(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, status("training"))

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    terminal.sleep = interrupt
    result = terminal.run("runs", "watch", "run-1")

    assert result.exit_code == 130
    assert "The run goes on. Watch it again: tensorant runs watch run-1" in result.stderr


def test_on_a_terminal_the_latest_state_is_drawn_in_place() -> None:
    api = ScriptedApi()
    api.answer(SHOW, *a_good_run())
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, color_system=None)

    with ApiClient(API, TOKEN, transport=httpx.MockTransport(api)) as client:
        ended = watch(client, "org-1", "run-1", console, sleep=lambda _seconds: None, now=lambda: NOON)

    assert ended.outcome == "succeeded"
    drawn = squeezed(screen.getvalue())
    assert "Step 20/40" in drawn
    assert "Loss 1.2 (first 4.9)" in drawn
    assert "Time left 1 min 40 s" in drawn
    assert "Cost so far $0.0123" in drawn
    assert any("Adapter verified" in line for line in drawn)
