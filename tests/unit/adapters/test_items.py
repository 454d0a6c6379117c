"""Domain values as table items, and back."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tensorant.adapters.dynamodb.items import body, marshalled, unmarshalled, value
from tensorant.contract import VerificationReport
from tensorant.domain.errors import FailureClass
from tensorant.domain.failures import Failure
from tensorant.domain.machines import Disposition, Goal, Seen
from tensorant.domain.projects import DatasetVersion
from tensorant.domain.runs import Adapter, Outcome, Progress
from tests.support.command_line import dataset_report, fault
from tests.support.worlds import (
    QUOTE,
    RUN,
    aws_connection,
    catalog,
    dataset_version,
    later,
    machine,
    run,
    s3_connection,
)

FAILURE = Failure(failure_class=FailureClass.LOST, code="machine_lost", message="It was terminated.")
FULL_RUN = replace(
    run({"price_limit_usd_per_hour": Decimal("0.10"), "instance_types": ("g6.xlarge", "g5.xlarge")})
    .launched("mia", at=later())
    .claim(QUOTE, at=later(minutes=1))
    .refusing(machine().candidate),
    outcome=Outcome.SUCCEEDED,
    failure=FAILURE,
    adapter=Adapter(key="k", etag='"e"', report=VerificationReport(sound=True, ranks=(4, 8))),
    ended_at=later(hours=1),
    version=7,
)
FULL_MACHINE = machine(
    goal=Goal.GONE,
    disposition=Disposition.VERIFIED,
    instance_id="i-1",
    seen=Seen.GONE,
    started_at=later(seconds=5.5),
    refusal=FAILURE,
    version=3,
)


@pytest.mark.parametrize(
    "entity",
    [
        FULL_RUN,
        FULL_MACHINE,
        run(),
        machine(),
        aws_connection(),
        s3_connection(),
        catalog(),
        dataset_version(),
        dataset_version(
            report=dataset_report(),
            trouble=fault(),
            same_as="data-0",
            stored_key="k",
            validating_since=later(),
        ),
    ],
)
def test_what_is_stored_comes_back_the_same(entity: Any) -> None:
    item = {"body": body(entity), "version": entity.version}

    assert value(type(entity), unmarshalled(marshalled(item))) == entity


def test_a_dataset_version_from_before_there_were_reports_is_read() -> None:
    before = body(dataset_version())
    for name in ("report", "same_as", "validating_since", "restarts", "trouble", "stored_key"):
        del before[name]

    read = value(DatasetVersion, {"body": before, "version": 3})

    assert read == dataset_version(version=3)
    assert read.key == f"projects/proj-1/datasets/data-1-{'d' * 64}.jsonl"


def test_money_is_kept_to_the_last_digit() -> None:
    assert body(QUOTE)["compute_usd_per_hour"] == "0.8048"


def test_a_field_that_is_not_known_any_more_is_passed_over() -> None:
    item = {"body": {**body(Progress(run_id=RUN)), "colour": "green"}}

    assert value(Progress, item) == Progress(run_id=RUN)


@pytest.mark.parametrize("loss", [0.0, 3.0, 2.7182818284590452, 1e-9, -0.5])
def test_a_loss_is_kept_exactly(loss: float) -> None:
    item = unmarshalled(marshalled({"body": body(Progress(run_id=RUN, loss=loss))}))

    assert value(Progress, item).loss == loss


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), float("-inf")])
def test_a_loss_that_is_no_number_is_kept_as_none(loss: float) -> None:
    item = unmarshalled(marshalled({"body": body(Progress(run_id=RUN, loss=loss))}))

    assert value(Progress, item).loss is None
