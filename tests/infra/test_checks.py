"""What other people's rules say about the template."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.infra.conftest import ROOT

if TYPE_CHECKING:
    from tests.infra.conftest import Synthesis
    from tests.infra.template import Template


def test_cdk_nag_has_no_finding_that_is_not_accepted(synthesis: Synthesis) -> None:
    assert synthesis.nag_said == ""


def test_cfn_lint_is_clean(template: Template) -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "cfn-lint", "--", template.path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_template_fits(template: Template) -> None:
    # CloudFormation, quotas: 1 MB from S3. DynamoDB, Step Functions: a definition of 1 MB.
    assert template.path.stat().st_size < 1_000_000
