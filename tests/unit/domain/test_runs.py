"""A run: candidates, outcome, spec."""

from __future__ import annotations

import pytest

from tensorant.contract import VerificationReport
from tensorant.domain.errors import FailureClass
from tensorant.domain.failures import Failure
from tensorant.domain.machines import Candidate
from tensorant.domain.runs import Adapter, Outcome
from tests.support.worlds import FIRST_SUBNET, G6, NOON, QUOTE, SECOND_SUBNET, later, run

IN_G6 = (
    Candidate(instance_type=G6, subnet_id=FIRST_SUBNET),
    Candidate(instance_type=G6, subnet_id=SECOND_SUBNET),
)
FAILURE = Failure(failure_class=FailureClass.TRAINING, code="bug", message="it broke")
ADAPTER = Adapter(key="k", etag="e", report=VerificationReport(sound=True))


def test_candidates_are_taken_in_the_order_of_the_offer_and_once() -> None:
    wanted = run()

    assert wanted.next_candidate(IN_G6) == IN_G6[0]
    assert wanted.refusing(IN_G6[0]).next_candidate(IN_G6) == IN_G6[1]
    assert wanted.refusing(IN_G6[0]).refusing(IN_G6[1]).next_candidate(IN_G6) is None


def test_credentials_must_outlast_the_limit_and_the_release_after_it() -> None:
    drafted = run({"time_limit_minutes": 90})

    # before the claim the limit would begin now; from the claim on its end is fixed
    assert drafted.credentials_needed_until(later(minutes=10)) == later(minutes=130)
    claimed = drafted.claim(QUOTE, at=later(minutes=10))
    assert claimed.credentials_needed_until(later(minutes=60)) == later(minutes=130)


@pytest.mark.parametrize("final", [Outcome.SUCCEEDED, Outcome.FAILED, Outcome.CANCELLED])
@pytest.mark.parametrize("another", Outcome)
def test_a_final_outcome_does_not_change(final: Outcome, another: Outcome) -> None:
    ended = run().ended(final, at=NOON)

    assert ended.ended(another, at=later(hours=1), failure=FAILURE) is ended


@pytest.mark.parametrize("final", [Outcome.SUCCEEDED, Outcome.FAILED, Outcome.CANCELLED])
def test_needs_recovery_becomes_one_of_the_others(final: Outcome) -> None:
    recovered = run().ended(Outcome.NEEDS_RECOVERY, at=NOON, failure=FAILURE).ended(final, at=later(hours=1))

    assert (recovered.outcome, recovered.ended_at) == (final, later(hours=1))


def test_a_success_has_its_adapter() -> None:
    assert run().succeeded(ADAPTER, at=NOON).adapter == ADAPTER


def test_the_time_limit_runs_from_the_claim() -> None:
    claimed = run({"time_limit_minutes": 90}).claim(QUOTE, at=later(minutes=10))

    assert claimed.claimed
    assert claimed.deadline_at == later(minutes=100)


def test_an_execution_is_named_by_run_operation_and_number() -> None:
    assert run().launched("mia", at=NOON).execution_name == "run-1-launch-1"


def test_objects_of_an_attempt_lie_under_its_own_prefix() -> None:
    assert run().prefix(2) == "runs/run-1/attempt-2/"


@pytest.mark.parametrize(("trial", "rows", "sample"), [(False, 200, None), (True, 200, 32), (True, 10, 10)])
def test_a_trial_trains_on_a_small_sample(*, trial: bool, rows: int, sample: int | None) -> None:
    drafted = run({"trial": trial})
    dataset = drafted.dataset.model_copy(update={"rows": rows})

    assert run({"trial": trial}, dataset=dataset).spec.dataset.sample_rows == sample


def test_the_specs_hash_follows_its_content() -> None:
    assert run().spec.sha256() == run().spec.sha256()
    assert run({"trial": True}).spec.sha256() != run().spec.sha256()
