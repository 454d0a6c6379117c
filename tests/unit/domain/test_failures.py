"""The one table that says what is kept and what goes."""

from __future__ import annotations

import pytest

from tensorant.domain import errors
from tensorant.domain.errors import FailureClass, ProviderError
from tensorant.domain.failures import NEXT_CANDIDATE, Failure

KEPT = {
    FailureClass.CAPACITY: False,
    FailureClass.QUOTA: False,
    FailureClass.PERMISSION: False,
    FailureClass.CONFIGURATION: False,
    FailureClass.CREDENTIALS: False,
    FailureClass.CREDIT: False,
    FailureClass.PRICE: False,
    FailureClass.BAD_HOST: False,
    FailureClass.DATASET: False,
    FailureClass.THROTTLED: True,
    FailureClass.PROVIDER_FAULT: True,
    FailureClass.STORAGE: True,
    FailureClass.TRAINING: True,
    FailureClass.DEADLINE: True,
    FailureClass.LOST: True,
}


@pytest.mark.parametrize("failure_class", FailureClass)
def test_output_is_let_go_only_where_there_can_be_none(failure_class: FailureClass) -> None:
    failure = Failure(failure_class=failure_class, code="some", message="some")

    assert failure.may_leave_output is KEPT[failure_class]


def test_only_want_of_capacity_takes_the_next_candidate() -> None:
    assert set(NEXT_CANDIDATE) == {FailureClass.CAPACITY}


def provider_errors() -> list[type[ProviderError]]:
    found = [each for each in vars(errors).values() if isinstance(each, type)]
    return [each for each in found if issubclass(each, ProviderError) and each is not ProviderError]


def test_every_provider_error_has_a_failure_class_of_its_own() -> None:
    classes = [each.failure_class for each in provider_errors()]

    assert len(classes) == len(set(classes)) == 12


def test_a_failure_keeps_the_errors_words() -> None:
    error = errors.Quota("VcpuLimitExceeded", "0 of 4 vCPUs", mend="Ask for more.")

    assert Failure.of(error) == Failure(
        failure_class=FailureClass.QUOTA,
        code="VcpuLimitExceeded",
        message="0 of 4 vCPUs",
        mend="Ask for more.",
    )
