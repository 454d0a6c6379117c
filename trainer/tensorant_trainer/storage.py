"""The organization's storage over presigned URLs: what its answers mean, and when to try again."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx

from tensorant.contract import TrainerExit
from tensorant_trainer.errors import TrainerError
from tensorant_trainer.retry import retried

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorant.contract import Grants

log = logging.getLogger(__name__)

TIMEOUT = httpx.Timeout(60.0)
"""For each read and write, not for the whole object."""
EXPIRY_MARGIN = timedelta(minutes=5)
"""Grants this near their end are asked anew, so that a transfer begun with them can still begin."""


class StorageUnavailableError(TrainerError):
    """No answer, or one that promises a better one later."""

    def __init__(self, message: str) -> None:
        super().__init__(TrainerExit.STORAGE, message)


class RightsRefusedError(TrainerError):
    """The storage does not accept the URL: its time is over, or its signer may not do this."""

    def __init__(self, message: str) -> None:
        super().__init__(TrainerExit.STORAGE, message)


class Rights:
    """The current grants, asked anew when they have ended or were refused."""

    def __init__(self, ask: Callable[[], Grants]) -> None:
        self._ask = ask
        self._grants: Grants | None = None

    def current(self) -> Grants:
        if self._grants is None or self._grants.expires_at - EXPIRY_MARGIN < datetime.now(UTC):
            self._grants = self._ask()
        return self._grants

    def renew(self) -> None:
        """Forget the grants; the next use asks for new ones."""
        self._grants = None


def transfer(rights: Rights, once: Callable[[Grants], None], *, pause: Callable[[float], None]) -> None:
    """Do `once` with valid grants; repeat it while the storage is away, and once with new grants if refused."""

    def attempt() -> None:
        try:
            once(rights.current())
        except RightsRefusedError as error:
            log.warning("%s Trying again with new rights.", error)
            rights.renew()
            once(rights.current())

    retried(attempt, on=StorageUnavailableError, pause=pause)


def http_client() -> httpx.Client:
    return httpx.Client(timeout=TIMEOUT)


def read_object(http: httpx.Client, url: str, what: str) -> Iterator[bytes]:
    """The object in pieces. Raises `TrainerError` (storage), or one of the two above; never names the URL."""
    try:
        with http.stream("GET", url) as response:
            raise_for(response, f"read {what}")
            yield from response.iter_bytes()
    except httpx.TransportError as error:
        message = f"The storage broke off while we read {what}: {type(error).__name__}."
        raise StorageUnavailableError(message) from error


def raise_for(response: httpx.Response, doing: str) -> None:
    """Translate an answer other than success."""
    status = response.status_code
    if response.is_success:
        return
    message = f"The storage answered {status} when asked to {doing}."
    if status == HTTPStatus.FORBIDDEN:
        raise RightsRefusedError(message)
    if response.is_server_error or status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS):
        raise StorageUnavailableError(message)
    raise TrainerError(TrainerExit.STORAGE, message)
