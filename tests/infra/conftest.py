from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
import pytest
from cdk_nag import AwsSolutionsChecks

from infra import app as infra_app
from tests.infra.template import Template

ROOT = Path(__file__).parents[2]

UNPACKED = Path.home() / ".cache" / "aws" / "jsii" / "package-cache"
"""CDK's library as jsii unpacked it before (Linux). With an empty home folder, that alone takes half a minute."""


@dataclass(frozen=True)
class Synthesis:
    """The template of a deployment with every default, and what cdk-nag said about it."""

    template: Template
    nag_said: str


@pytest.fixture(scope="session")
def synthesis(tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    out = tmp_path_factory.mktemp("cdk.out")
    app = infra_app.build(outdir=str(out), context={"aws:cdk:bundling-stacks": []})
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    said = ""
    try:
        app.synth()
    except RuntimeError as error:  # cdk-nag's findings; the template is written all the same
        said = f"{error}\n{(out / 'validation-report.json').read_text(encoding='utf-8')}"
    return Synthesis(Template.read(out / f"{infra_app.STACK_ID}.template.json"), said)


@pytest.fixture(scope="session")
def template(synthesis: Synthesis) -> Template:
    return synthesis.template


@pytest.fixture(scope="session")
def bare_template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """Synthesized as a process of its own, with no PATH, no credentials and a home folder that is empty.

    Its context differs from every default, so that one synthesis shows both.
    """
    out, home = tmp_path_factory.mktemp("bare.out"), tmp_path_factory.mktemp("home")
    context = """{
        "aws:cdk:bundling-stacks": [], "deployment": "acme", "ephemeral": "true", "adminGroup": "gpu-admins",
        "customerAccounts": "444455556666, 111122223333,444455556666", "sameAccountCompute": "true",
        "allowPrivateStorage": "true",
        "oidcIssuer": "https://login.example.com/acme", "oidcAudience": "tensorant, tensorant-cli",
        "trainerImage": "images.example.com/trainer@sha256:%s"
    }""" % ("a" * 64)
    environment = {"HOME": str(home), "CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": context}
    if UNPACKED.is_dir():
        environment["JSII_RUNTIME_PACKAGE_CACHE_ROOT"] = str(UNPACKED)
    if "SYSTEMROOT" in os.environ:  # Windows starts nothing without it
        environment["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    subprocess.run(
        [sys.executable, "-m", "infra.app"],
        cwd=ROOT,
        env=environment,
        check=True,
        timeout=180,
        stdin=subprocess.DEVNULL,
    )
    return Template.read(out / f"{infra_app.STACK_ID}.template.json")
