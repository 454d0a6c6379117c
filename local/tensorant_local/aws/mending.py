"""How a defect of moto is mended: one small replacement, named by the defect, active only while a cloud runs."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeVar

from tensorant_local.aws import running

if TYPE_CHECKING:
    from collections.abc import Callable

Replacement = TypeVar("Replacement", bound="Callable[..., Any]")


class Mends:
    """The replacements of one service. A replacement gets the original as its first argument."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], None]] = []

    def __call__(self, owner: Any, name: str) -> Callable[[Replacement], Replacement]:
        """Register the decorated function as the replacement of `owner.name`."""

        def register(replacement: Replacement) -> Replacement:
            self._waiting.append(lambda: _install(owner, name, replacement))
            return replacement

        return register

    def apply(self) -> None:
        """Install what isn't installed yet; safe to repeat."""
        while self._waiting:
            self._waiting.pop(0)()


def _install(owner: Any, name: str, replacement: Callable[..., Any]) -> None:
    present = inspect.getattr_static(owner, name)
    if isinstance(present, property):
        setattr(owner, name, property(_switched(present.fget, replacement)))
    elif isinstance(present, staticmethod):
        setattr(owner, name, staticmethod(_switched(present.__func__, replacement)))
    else:
        setattr(owner, name, _switched(present, replacement))


def _switched(original: Any, replacement: Callable[..., Any]) -> Callable[..., Any]:
    """Other users of moto in this process, outside a running cloud, meet the original."""

    @functools.wraps(original)
    def switched(*args: Any, **kwargs: Any) -> Any:
        if running.is_running():
            return replacement(original, *args, **kwargs)
        return original(*args, **kwargs)

    return switched
