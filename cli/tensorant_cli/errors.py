"""What can go wrong for the one who types: always what, where and the mend.

CliError            anything a person can be told in those words
├── ApiError        the API refused or failed; its own words
├── Blocked         what would end a launch, known before it
├── Unreachable     the API, the storage or the user pool did not answer
└── Unsound         a downloaded archive is not the adapter that the run made
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict


class Problem(BaseModel):
    """One fault in the API's error shape."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    code: str
    message: str
    mend: str = ""
    field: str | None = None
    request_id: str | None = None


class CliError(Exception):
    """`message` says what happened; `mend` what the reader can do."""

    def __init__(self, message: str, *, mend: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.mend = mend

    @property
    def problems(self) -> Sequence[Problem]:
        """All that is to be told, the first first."""
        return [Problem(code="", message=self.message, mend=self.mend)]


class ApiError(CliError):
    """The API's answer. `also` are further faults of the same request."""

    def __init__(self, status: int, problem: Problem, also: Sequence[Problem] = ()) -> None:
        super().__init__(problem.message, mend=problem.mend)
        self.status = status
        self.code = problem.code
        self.field = problem.field
        self.request_id = problem.request_id
        self._problems = (problem, *also)

    @property
    def problems(self) -> Sequence[Problem]:
        return self._problems


class Blocked(CliError):
    """All that stands against a launch, as the review tells it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems[0].message, mend=problems[0].mend)
        self._problems = problems

    @property
    def problems(self) -> Sequence[Problem]:
        return self._problems


class Unreachable(CliError):
    """No answer; whether a request that changes something was carried out is not known."""


class Unsound(CliError):
    """The archive fails verification; it is not kept."""
