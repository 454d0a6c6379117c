"""docs/connectors/aws.md tells people what to do: it knows every code that they may be told."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from tensorant.adapters.ec2.codes import CODES
from tensorant.adapters.ec2.state_reasons import LAUNCH_FAILURES
from tensorant.domain import aws_names
from tensorant.domain.host_faults import HOST_FAULTS

GUIDE = (Path(__file__).parents[2] / "docs" / "connectors" / "aws.md").read_text(encoding="utf-8")
FIELD_FAULTS = re.findall(
    r"""["']([a-z_]+_(?:malformed|given|allowed|unknown|partition))["']""", inspect.getsource(aws_names)
)
NAMED = set(re.findall(r"`([\w.]+)`", GUIDE))


@pytest.mark.parametrize("code", [*CODES, *LAUNCH_FAILURES, *HOST_FAULTS, *FIELD_FAULTS])
def test_what_to_do_about_each_code_is_in_the_guide(code: str) -> None:
    assert code in NAMED


@pytest.mark.parametrize("link", re.findall(r"\]\(([\w./-]+)\)", GUIDE))
def test_what_the_guide_points_to_exists(link: str) -> None:
    assert (Path(__file__).parents[2] / "docs" / "connectors" / link).exists()
