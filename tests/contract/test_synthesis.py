"""A template is synthesized when its sources have changed, and only then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tensorant_local import synthesis
from tensorant_local.synthesis import SynthesisFailed

APP = """
import json, os, pathlib
out = pathlib.Path(os.environ["CDK_OUTDIR"])
(out / "asset.1").mkdir(parents=True)
context = json.loads(os.environ["CDK_CONTEXT_JSON"])
runs = pathlib.Path(__file__).with_name("runs")
(out / "Tensorant.template.json").write_text(json.dumps({"Resources": {}, "Description": json.dumps(context)}))
pathlib.Path(os.environ["RUNS"]).open("a").write("x")
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose app counts how often it ran."""
    project = tmp_path / "project"
    (project / "infra").mkdir(parents=True)
    (project / "infra" / "__init__.py").touch()
    (project / "infra" / "app.py").write_text(APP)
    (project / "cdk.json").write_text('{"context": {"flag": true}}')
    monkeypatch.setenv("RUNS", str(tmp_path / "runs"))
    return project


def runs(project: Path) -> int:
    return len((project.parent / "runs").read_text())


def test_a_template_is_synthesized_once_for_each_state_of_its_sources(project: Path) -> None:
    cache = project / ".tensorant" / "synth"

    first = synthesis.template(project, cache=cache)
    assert synthesis.template(project, cache=cache) == first
    assert runs(project) == 1

    (project / "statemachines").mkdir()
    (project / "statemachines" / "a.asl.json").write_text("{}")
    synthesis.template(project, cache=cache)
    assert runs(project) == 2

    synthesis.template(project, cache=cache, context={"deployment": "other"})
    assert runs(project) == 3


def test_context_comes_from_the_project_and_from_the_caller_and_nothing_is_bundled(project: Path) -> None:
    template = synthesis.template(project, cache=project / "synth", context={"ephemeral": "true"})

    assert json.loads(template["Description"]) == {
        "aws:cdk:bundling-stacks": [],
        "ephemeral": "true",
        "flag": True,
    }


def test_a_failing_app_is_told_with_its_words_and_nothing_is_kept(project: Path) -> None:
    (project / "infra" / "app.py").write_text("raise SystemExit('oidcIssuer is not of the form: https://…')")

    with pytest.raises(SynthesisFailed, match="oidcIssuer"):
        synthesis.template(project, cache=project / "synth")

    assert list((project / "synth").iterdir()) == []
