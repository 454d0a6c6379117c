"""The error tree. Each error says what, where and the mend; adapters translate SDK errors into it once.

TensorantError
├── Rejected            what a person asked for can't be done
│   ├── Invalid         a field is wrong
│   ├── Unauthenticated no identity, or not a valid one
│   ├── Forbidden       a member, but not allowed to
│   ├── NotFound        no such thing in this organization
│   ├── Conflict        the state does not allow it, or somebody changed it meanwhile
│   └── Ended           the attempt that asks is over
├── NotYetConfirmed     the provider has not said so yet; ask again
└── ProviderError       an outside system refused or failed; one class for each failure class
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar


class FailureClass(StrEnum):
    """Why a run could not go on, in the words of the one who can mend it."""

    CAPACITY = "capacity"
    QUOTA = "quota"
    PERMISSION = "permission"
    CONFIGURATION = "configuration"
    CREDENTIALS = "credentials"
    CREDIT = "credit"
    PRICE = "price"
    THROTTLED = "throttled"
    BAD_HOST = "bad_host"
    PROVIDER_FAULT = "provider_fault"
    STORAGE = "storage"
    DATASET = "dataset"
    TRAINING = "training"
    DEADLINE = "deadline"
    LOST = "lost"


class TensorantError(Exception):
    """Base of all. `code` is stable; `message` says what happened; `mend` what the reader can do."""

    def __init__(self, code: str, message: str, *, mend: str = "", field: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.mend = mend
        self.field = field


class Rejected(TensorantError):
    """Base of what a caller did wrong."""


class Invalid(Rejected):
    """A field is wrong; `field` names it."""


class Unauthenticated(Rejected):
    """No identity, or not a valid one."""


class Forbidden(Rejected):
    """A known member asks for what only another role may do."""


class NotFound(Rejected):
    """No such thing in this organization; other organizations' things are not told apart."""

    def __init__(self, what: str, identifier: str) -> None:
        super().__init__(
            "not_found", f"There is no {what} {identifier} here.", mend="Check the id and the organization."
        )


class Conflict(Rejected):
    """The present state does not allow it, or the record changed between reading and writing."""


class Ended(Rejected):
    """A machine speaks whose attempt is over."""


class NotYetConfirmed(TensorantError):
    """A machine has not reached its goal yet. The workflow asks again, backing off."""


class ProviderError(TensorantError):
    """An outside system refused or failed. `failure_class` says which kind of mend is needed."""

    failure_class: ClassVar[FailureClass]


class Capacity(ProviderError):
    """None to be had here and now; another type, subnet or hour may do."""

    failure_class = FailureClass.CAPACITY


class Quota(ProviderError):
    """An account limit must be raised or freed."""

    failure_class = FailureClass.QUOTA


class Permission(ProviderError):
    """The credentials are good, but may not do this."""

    failure_class = FailureClass.PERMISSION


class Configuration(ProviderError):
    """A setting of the connection is wrong."""

    failure_class = FailureClass.CONFIGURATION


class Credentials(ProviderError):
    """The credentials are wrong, expired or revoked."""

    failure_class = FailureClass.CREDENTIALS


class Credit(ProviderError):
    """The account at the provider has no money."""

    failure_class = FailureClass.CREDIT


class Price(ProviderError):
    """Above the run's limit, or unknown."""

    failure_class = FailureClass.PRICE


class Throttled(ProviderError):
    """Too many requests; nothing was done."""

    failure_class = FailureClass.THROTTLED


class BadHost(ProviderError):
    """The machine can't do the work."""

    failure_class = FailureClass.BAD_HOST


class ProviderFault(ProviderError):
    """The provider failed or did not answer: whether it acted is not known."""

    failure_class = FailureClass.PROVIDER_FAULT


class Deadline(ProviderError):
    """The run's time is over."""

    failure_class = FailureClass.DEADLINE


class Storage(ProviderError):
    """The organization's object storage refused or failed."""

    failure_class = FailureClass.STORAGE


DOUBTFUL: tuple[type[ProviderError], ...] = (Throttled, ProviderFault)
"""After these the same request may be repeated; after any other the answer is definite."""
