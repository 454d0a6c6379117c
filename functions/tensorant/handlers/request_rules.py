"""The domain's rules as pydantic's: each fault is told beside those of other fields."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from tensorant.domain.errors import Invalid


def fault(code: str, message: str, mend: str) -> PydanticCustomError:
    return PydanticCustomError("fault", "{told}", {"code": code, "told": message, "mend": mend})


def told(error: Invalid) -> PydanticCustomError:
    """The domain's error; the field is pydantic's to name."""
    return fault(error.code, error.message, error.mend)


def rule(known: Callable[[str], str]) -> AfterValidator:
    """A rule that returns a value as it is kept, or raises `Invalid`."""

    def check(value: str) -> str:
        try:
            return known(value)
        except Invalid as error:
            raise told(error) from None

    return AfterValidator(check)
