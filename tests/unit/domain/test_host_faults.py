"""What a host's own report of failure means."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tensorant import boot
from tensorant.contract import Event, EventType
from tensorant.domain.errors import FailureClass
from tensorant.domain.failures import NOTHING_TO_KEEP
from tensorant.domain.host_faults import HOST_FAULTS, host_failure
from tests.support.worlds import event

SCRIPTS = [Path(boot.__file__).with_name(name) for name in ("run.sh", "preflight.sh")]
BAD_HOST = {"gpu_missing", "gpu_in_container", "boot_script"}
"""What another machine of the same kind may do better; all else comes again until somebody changes it."""


def failed(code: str | None, message: str = "As the host says.") -> Event:
    return event(EventType.PREFLIGHT_FAILED, code=code, message=message)


def codes_of_the_scripts() -> set[str]:
    text = "".join(script.read_text(encoding="utf-8") for script in SCRIPTS)
    found = set(re.findall(r"\bfail ([a-z_]+)", text)) | set(re.findall(r"--code ([a-z_]+)", text))
    return found | {f"route_{place}" for place in re.findall(r"check_route ([a-z]+)", text)}


def test_every_code_of_the_boot_scripts_is_in_the_table_and_no_other() -> None:
    assert codes_of_the_scripts() == set(HOST_FAULTS)


@pytest.mark.parametrize("code", HOST_FAULTS)
def test_a_fault_is_the_hosts_or_of_what_somebody_set(code: str) -> None:
    failure = host_failure(failed(code))

    expected = FailureClass.BAD_HOST if code in BAD_HOST else FailureClass.CONFIGURATION
    assert (failure.failure_class, failure.code, failure.message) == (expected, code, "As the host says.")
    assert failure.mend.endswith(".")
    assert failure.failure_class in NOTHING_TO_KEEP


def test_no_two_faults_have_the_same_mend() -> None:
    assert len({mend for _, mend in HOST_FAULTS.values()}) == len(HOST_FAULTS)


@pytest.mark.parametrize(("code", "told"), [(None, "preflight_failed"), ("of_tomorrow", "of_tomorrow")])
def test_a_code_of_another_version_is_the_hosts_fault(code: str | None, told: str) -> None:
    failure = host_failure(failed(code, message=""))

    assert (failure.failure_class, failure.code) == (FailureClass.BAD_HOST, told)
    assert failure.message == "The machine failed its preflight."
    assert "AWS guide" in failure.mend
