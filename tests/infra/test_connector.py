"""The connector as a CDK app: the plain template, through CDK."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from cdk_nag import AwsSolutionsChecks

from infra.connector.__main__ import STACK_ID, build
from infra.connector.customer import Customer
from infra.deployment import ContextError
from tensorant.connector.policy import policy
from tensorant.connector.template import CustomerBus, template
from tensorant.domain.connections import AwsSettings, CredentialKind
from tensorant.handlers.connection_views import ConnectionView
from tests.infra.conftest import ROOT, UNPACKED
from tests.support.worlds import ACCOUNT, AWS_SETTINGS, NOON, aws_connection

BUS = "arn:aws:events:us-east-1:999988887777:event-bus/tensorant-customers"

SETTINGS = replace(
    AWS_SETTINGS,
    region="eu-west-1",
    key_name="recovery",
    instance_profile_arn=f"arn:aws:iam::{ACCOUNT}:instance-profile/training",
)
ROLE = replace(
    SETTINGS,
    credentials=CredentialKind.ROLE,
    role_arn=f"arn:aws:iam::{ACCOUNT}:role/tensorant-training",
    external_id="external-1",
)


def shown(folder: Path, settings: AwsSettings = SETTINGS, **changes: Any) -> dict[str, str]:
    """The context of a customer who has saved its connection as the command line shows it."""
    file = folder / "connection.json"
    view = ConnectionView.of(aws_connection(settings=settings, **changes), now=NOON)
    file.write_text(view.model_dump_json(), encoding="utf-8")
    return {"connection": str(file), "customerBusArn": BUS, "quota": "true", "checks": "true"}


def plain(settings: AwsSettings) -> dict[str, Any]:
    document = policy(settings, ACCOUNT, quota=True, checks=True)
    return template(settings, ACCOUNT, document, bus=CustomerBus(BUS))


def synthesized(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / f"{STACK_ID}.template.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("settings", [SETTINGS, ROLE], ids=["keys", "role"])
def test_the_stack_is_the_plain_template(tmp_path: Path, settings: AwsSettings) -> None:
    build(outdir=str(tmp_path / "out"), context=shown(tmp_path, settings)).synth()

    made = synthesized(tmp_path / "out")
    wanted = plain(settings)
    assert {part: made.get(part) for part in wanted if part != "Description"} == {
        part: value for part, value in wanted.items() if part != "Description"
    }
    assert "Parameters" not in made


@pytest.mark.parametrize("settings", [SETTINGS, ROLE], ids=["keys", "role"])
def test_cdk_nag_has_no_finding_that_is_not_accepted(tmp_path: Path, settings: AwsSettings) -> None:
    app = build(outdir=str(tmp_path / "out"), context=shown(tmp_path, settings))
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))

    app.synth()  # raises for a finding


def test_it_is_synthesized_without_credentials(tmp_path: Path) -> None:
    out, home = tmp_path / "out", tmp_path / "home"
    home.mkdir()
    context = json.dumps(shown(tmp_path, account_id=None) | {"account": ACCOUNT})
    environment = {"HOME": str(home), "CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": context}
    if UNPACKED.is_dir():
        environment["JSII_RUNTIME_PACKAGE_CACHE_ROOT"] = str(UNPACKED)
    if "SYSTEMROOT" in os.environ:
        environment["SYSTEMROOT"] = os.environ["SYSTEMROOT"]

    subprocess.run(
        [sys.executable, "-m", "infra.connector"],
        cwd=ROOT,
        env=environment,
        check=True,
        timeout=180,
        stdin=subprocess.DEVNULL,
    )

    assert synthesized(out)["Resources"] == plain(SETTINGS)["Resources"]


@pytest.mark.parametrize("settings", [SETTINGS, ROLE], ids=["keys", "role"])
def test_cfn_lint_is_clean(tmp_path: Path, settings: AwsSettings) -> None:
    file = tmp_path / "connector.json"
    file.write_text(json.dumps(plain(settings)), encoding="utf-8")

    done = subprocess.run(
        [Path(sys.executable).parent / "cfn-lint", "--regions", settings.region, "--", file],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"connection": None}, "connection"),
        ({"connection": "nowhere.json"}, "connection"),
        ({"customerBusArn": None}, "customerBusArn"),
        ({"customerBusArn": "tensorant-customers"}, "customerBusArn"),
        ({"account": "1234"}, "account"),
    ],
)
def test_a_value_that_is_missing_or_wrong_is_named(
    tmp_path: Path, changes: dict[str, str | None], named: str
) -> None:
    context = {**shown(tmp_path), **changes}

    with pytest.raises(ContextError, match=named):
        Customer.from_context(context.get)


def test_the_account_must_be_known(tmp_path: Path) -> None:
    with pytest.raises(ContextError, match="account"):
        Customer.from_context(shown(tmp_path, account_id=None).get)
