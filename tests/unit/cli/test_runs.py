"""Runs: drafted with the API's fields, reviewed, launched after a yes, shown, read."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal

import pytest

from tensorant.contract import LoraSpec
from tensorant.domain.timeline import Fact
from tensorant.handlers import views
from tensorant.handlers.requests import CreateRun
from tests.support.command_line import (
    NOON,
    ORG,
    ScriptedApi,
    Terminal,
    connection,
    dataset,
    listed,
    machine,
    obstacle,
    problem,
    progress,
    project,
    quote,
    retirement,
    review,
    run,
    squeezed,
    status,
    trainer_killed,
)
from tests.unit.cli.test_profiles import local_mode

DRAFT = f"POST {ORG}/runs"
SHOW = f"GET {ORG}/runs/run-1"
REVIEW = f"GET {ORG}/runs/run-1/review"
LAUNCH = f"POST {ORG}/runs/run-1/launch"
LOGS = f"GET {ORG}/runs/run-1/logs"
OPTIONS = (
    *("--base-model", "example/base-135M"),
    *("--instance-type", "g6.xlarge"),
    *("--price-limit-usd-per-hour", "1.50"),
    *("--time-limit-minutes", "90"),
)


def test_a_draft_chooses_the_only_project_connection_and_dataset(
    terminal: Terminal, api: ScriptedApi
) -> None:
    api.answer(f"GET {ORG}/projects", listed(project()))
    api.answer(f"GET {ORG}/connections", listed(connection(), connection(id="conn-2", kind="aws")))
    versions = listed(dataset(id="data-0", status="invalid"), dataset())
    api.answer(f"GET {ORG}/projects/proj-1/dataset-versions", versions)
    api.answer(DRAFT, run(launched_at=None), status=201)

    result = terminal.run("runs", "draft", *OPTIONS)

    assert result.exit_code == 0
    assert result.stdout == "Drafted the run First: run-1\n"
    asked = CreateRun.model_validate(api.sent(DRAFT))
    assert (asked.name, asked.base_model.revision) == ("base-135M", "main")
    assert (asked.project_id, asked.connection_id, asked.dataset_version_id) == ("proj-1", "conn-2", "data-1")
    assert asked.price_limit_usd_per_hour == Decimal("1.50")
    assert asked.lora == LoraSpec()


def test_in_local_mode_its_own_base_model_is_taken(terminal: Terminal, api: ScriptedApi) -> None:
    local_mode(
        terminal.directory, organization="org-1", base_model={"repository": "example/tiny", "revision": "v0"}
    )
    terminal.environ.clear()
    api.answer(DRAFT, run(launched_at=None), status=201)
    places = ("--project", "proj-1", "--connection", "conn-2", "--dataset-version", "data-1")

    result = terminal.run(
        "runs", "draft", "--instance-type", "g6.xlarge", "--price-limit", "1", "--time-limit", "30", *places
    )

    assert result.exit_code == 0
    assert "Base model: example/tiny at v0 (local mode's)." in result.stderr
    asked = CreateRun.model_validate(api.sent(DRAFT))
    assert (asked.name, asked.base_model.repository, asked.base_model.revision) == (
        "tiny",
        "example/tiny",
        "v0",
    )


def test_elsewhere_a_base_model_must_be_named(terminal: Terminal, api: ScriptedApi) -> None:
    result = terminal.run(
        "runs", "draft", "--instance-type", "g6.xlarge", "--price-limit", "1", "--time-limit", "30"
    )

    assert result.exit_code == 1
    assert "Not given: --base-model." in result.stderr
    assert api.requests == []


def test_every_option_of_a_draft_reaches_its_field(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(DRAFT, run(launched_at=None), status=201)

    result = terminal.run(
        *("runs", "draft", *OPTIONS, "--instance-type", "g5.xlarge", "--name", "Second", "--trial"),
        *("--revision", "v1", "--workspace-gib", "60", "--project", "proj-1", "--connection", "conn-2"),
        *("--dataset-version", "data-1", "--rank", "8", "--alpha", "16", "--dropout", "0.1"),
        *("--target-module", "q_proj", "--target-module", "v_proj", "--use-rslora", "--use-dora"),
        *("--epochs", "2", "--max-steps", "40", "--learning-rate", "1e-3", "--batch-size", "4"),
        *("--max-tokens", "512", "--warmup-ratio", "0.1", "--seed", "7"),
    )

    assert result.exit_code == 0
    sent = api.sent(DRAFT)
    CreateRun.model_validate(sent)
    assert sent == {
        "name": "Second",
        "project_id": "proj-1",
        "connection_id": "conn-2",
        "dataset_version_id": "data-1",
        "base_model": {"repository": "example/base-135M", "revision": "v1"},
        "instance_types": ["g6.xlarge", "g5.xlarge"],
        "price_limit_usd_per_hour": "1.50",
        "time_limit_minutes": 90,
        "workspace_gib": 60,
        "trial": True,
        "lora": {
            "rank": 8,
            "alpha": 16,
            "dropout": 0.1,
            "target_modules": ["q_proj", "v_proj"],
            "use_rslora": True,
            "use_dora": True,
        },
        "training": {
            "epochs": 2.0,
            "max_steps": 40,
            "learning_rate": 0.001,
            "batch_size": 4,
            "max_tokens": 512,
            "warmup_ratio": 0.1,
            "seed": 7,
        },
    }


def test_what_was_drafted_last_is_what_is_reviewed(terminal: Terminal, api: ScriptedApi) -> None:
    places = ("--project", "proj-1", "--connection", "conn-2", "--dataset-version", "data-1")
    api.answer(DRAFT, run(launched_at=None), status=201)
    api.answer(REVIEW, review())
    terminal.run("runs", "draft", *OPTIONS, *places)

    result = terminal.run("runs", "review")

    assert result.exit_code == 0
    assert "Run: run-1 (the last one)." in result.stderr
    assert squeezed(result.stdout)[0] == "Run run-1 (First)"
    assert "Nothing is reserved" in result.stderr


def test_the_last_places_of_a_draft_are_taken_again(terminal: Terminal, api: ScriptedApi) -> None:
    places = ("--project", "proj-1", "--connection", "conn-2", "--dataset-version", "data-1")
    api.answer(DRAFT, run(launched_at=None), status=201)
    terminal.run("runs", "draft", *OPTIONS, *places)

    result = terminal.run("runs", "draft", *OPTIONS)

    assert result.exit_code == 0
    assert api.calls() == [DRAFT, DRAFT]
    assert "Dataset version: data-1 (used last)." in result.stderr


def test_a_launch_asks_with_the_price(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, status("draft", run=run(launched_at=None)))
    api.answer(REVIEW, review())
    api.answer(LAUNCH, run(), status=202)

    result = terminal.run("runs", "launch", "run-1", typed="y\n")

    assert result.exit_code == 0
    assert "Launch it for $0.8138/h, at most $1.2207?" in result.stderr
    assert result.stdout.endswith("Launched run-1.\n")


def test_a_no_launches_nothing(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, status("draft", run=run(launched_at=None)))
    api.answer(REVIEW, review())

    for typed in ("n\n", ""):
        result = terminal.run("runs", "launch", "run-1", typed=typed)

        assert result.exit_code == 1
        assert "Error: Not launched." in result.stderr
        assert "--yes" in result.stderr
    assert LAUNCH not in api.calls()


def test_a_price_above_the_limit_is_not_launched_even_with_yes(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, status("draft", run=run(launched_at=None)))
    api.answer(REVIEW, review(obstacle(), quote=quote(usd_per_hour=Decimal("1.6000"))))

    result = terminal.run("runs", "launch", "run-1", "--yes")

    assert result.exit_code == 1
    assert "g6.xlarge costs $1.6000 an hour, above the limit of $1.50.\nMend: Raise" in result.stderr
    assert LAUNCH not in api.calls()


def test_launching_again_asks_nothing_and_changes_nothing(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, status("training"))
    api.answer(LAUNCH, run(), status=202)

    result = terminal.run("runs", "launch", "run-1")

    assert result.exit_code == 0
    assert "was launched at 2026-03-01 12:00:00 UTC already" in result.stderr
    assert api.calls() == [SHOW, LAUNCH]


def test_a_launch_can_be_watched_to_its_end(terminal: Terminal, api: ScriptedApi) -> None:
    ended = status("ended", outcome="failed", failure=trainer_killed())
    api.answer(SHOW, status("draft", run=run(launched_at=None)), status("launching"), ended)
    api.answer(REVIEW, review())
    api.answer(LAUNCH, run(), status=202)

    result = terminal.run("runs", "launch", "run-1", "--yes", "--watch")

    assert result.exit_code == 1
    assert "Outcome failed lost (trainer_exited): The trainer ended with exit code 137." in " ".join(
        squeezed(result.stdout)
    )


def test_a_negative_limit_is_the_api_s_to_refuse(terminal: Terminal, api: ScriptedApi) -> None:
    refused = problem(
        code="greater_than",
        field="price_limit_usd_per_hour",
        message="price_limit_usd_per_hour: Input should be greater than 0.",
        mend="Correct the value.",
    )
    api.answer(DRAFT, refused, status=422)
    options = [*OPTIONS]
    options[options.index("1.50")] = "-1"

    result = terminal.run(
        *("runs", "draft", *options, "--project", "proj-1"),
        *("--connection", "conn-2", "--dataset-version", "data-1"),
    )

    assert result.exit_code == 1
    assert "Error: price_limit_usd_per_hour: Input should be greater than 0." in result.stderr


def test_last_is_the_newest_run_where_none_was_used(terminal: Terminal, api: ScriptedApi) -> None:
    older = run(id="run-0", created_at=NOON - timedelta(days=1))
    api.answer(f"GET {ORG}/runs", listed(older, run()))
    api.answer(SHOW, status("training", machine=machine("running"), progress=progress("training", 12, 2.31)))

    result = terminal.run("runs", "show")

    assert result.exit_code == 0
    lines = squeezed(result.stdout)
    assert "Phase training" in lines
    assert "Progress step 12/40, loss 2.31, 2 min 20 s left" in lines
    assert "Outcome open" in lines
    assert "Machine running g6.xlarge i-0123456789abcdef0: the provider says running" in lines
    assert "Cost $0.0123 quoted $0.8138/h" in lines


def test_what_is_announced_of_a_machine_is_shown(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, status("training", machine=machine("running"), warnings=[retirement()]))

    lines = squeezed(terminal.run("runs", "show", "run-1").stdout)

    assert lines[-2:] == [
        "Warned Of what",
        "2026-03-01 12:00:00 UTC EC2 will stop the machine. Let the run finish before.",
    ]


@pytest.mark.parametrize(
    ("deleted", "line"),
    [
        (True, "Disk vol-0123456789abcdef0, goes with its machine"),
        (False, "Disk vol-0123456789abcdef0, STAYS when its machine goes"),
    ],
)
def test_a_disk_says_whether_it_goes_with_its_machine(
    terminal: Terminal, api: ScriptedApi, *, deleted: bool, line: str
) -> None:
    its = machine("running", volume_id="vol-0123456789abcdef0", deleted_on_termination=deleted)
    api.answer(SHOW, status("training", machine=its))

    assert line in squeezed(terminal.run("runs", "show", "run-1").stdout)


def test_a_disk_that_was_left_over_is_shown_with_the_machine(terminal: Terminal, api: ScriptedApi) -> None:
    its = machine("released", left_over="The disk vol-1 was left behind: delete it in EC2.")
    api.answer(SHOW, status("ended", outcome="cancelled", machine=its))

    lines = squeezed(terminal.run("runs", "show", "run-1").stdout)

    assert "Left over disk The disk vol-1 was left behind: delete it in EC2." in lines


def test_the_timeline_is_shown_oldest_first(terminal: Terminal, api: ScriptedApi) -> None:
    facts = [
        Fact(run_id="run-1", id="1", at=NOON, kind="run_launched", source="subject-1"),
        Fact(run_id="run-1", id="2", at=NOON, kind="booted", source="host", attempt=1, message="Up."),
    ]
    api.answer(f"GET {ORG}/runs/run-1/events", listed(*map(views.FactView.of, facts)))

    lines = squeezed(terminal.run("runs", "events", "run-1").stdout)

    assert lines[1:] == [
        "2026-03-01 12:00:00 UTC - subject-1 run launched",
        "2026-03-01 12:00:00 UTC 1 host booted Up.",
    ]


def log_page(*texts: str, following: str | None) -> views.LogPageView:
    lines = [views.LogLineView(at=NOON, source="trainer", text=text) for text in texts]
    return views.LogPageView(lines=lines, next=following)


def test_a_log_is_read_to_its_end_over_empty_pages(terminal: Terminal, api: ScriptedApi) -> None:
    pages = [log_page("one", following="f/1"), log_page(following="f/2"), log_page("two", following="f/3")]
    api.answer(LOGS, *pages, log_page(following="f/3"))

    result = terminal.run("runs", "logs", "run-1")

    assert squeezed(result.stdout) == ["12:00:00 trainer one", "12:00:00 trainer two"]
    assert [each.url.params.get("after") for each in api.requests] == [None, "f/1", "f/2", "f/3"]


def test_a_log_can_be_followed_until_the_run_has_ended(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(
        SHOW, status("training", machine=machine("running")), status("ended", machine=machine("released"))
    )
    api.answer(LOGS, log_page("one", following="f/1"), log_page(following="f/1"))
    api.answer(LOGS, log_page("two", following="f/2"), log_page(following="f/2"))

    result = terminal.run("runs", "logs", "run-1", "--follow", "--json")

    assert [json.loads(line)["text"] for line in result.stdout.splitlines()] == ["one", "two"]
    assert terminal.slept == [2.0]


def test_a_later_attempt_s_log_is_followed_from_its_start(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(SHOW, status("training", machine=machine("running")))
    api.answer(SHOW, status("ended", machine=machine("released", attempt=2)))
    api.answer(LOGS, log_page("first", following="f/1"), log_page(following="f/1"))
    api.answer(LOGS, log_page("second", following="f/1"), log_page(following="f/1"))

    terminal.run("runs", "logs", "run-1", "--follow")

    reads = [each for each in api.requests if each.url.path.endswith("/logs")]
    assert [each.url.params.get("after") for each in reads] == [None, "f/1", None, "f/1"]
