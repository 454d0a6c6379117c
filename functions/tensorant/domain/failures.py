"""What a failure means for the machine: the one table that says what is kept and what goes."""

from __future__ import annotations

from dataclasses import dataclass

from tensorant.domain.errors import FailureClass, ProviderError

NOTHING_TO_KEEP = frozenset(
    {
        FailureClass.CAPACITY,
        FailureClass.QUOTA,
        FailureClass.PERMISSION,
        FailureClass.CONFIGURATION,
        FailureClass.CREDENTIALS,
        FailureClass.CREDIT,
        FailureClass.PRICE,
        FailureClass.BAD_HOST,
        FailureClass.DATASET,
    }
)
"""After these no output can exist. After any other the machine is stopped and its disk kept;
a run that timed out (DEADLINE) is always kept."""

NEXT_CANDIDATE = frozenset({FailureClass.CAPACITY})
"""After these another type or subnet may be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a run, or one ask, did not go on."""

    failure_class: FailureClass
    code: str
    message: str
    mend: str = ""

    @classmethod
    def of(cls, error: ProviderError) -> Failure:
        return cls(failure_class=error.failure_class, code=error.code, message=error.message, mend=error.mend)

    @property
    def may_leave_output(self) -> bool:
        return self.failure_class not in NOTHING_TO_KEEP
