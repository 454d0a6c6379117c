"""How requests travel: encrypted or on loopback, with time-outs, and repeated only where that is harmless."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from urllib.parse import urlsplit

import httpx

from tensorant_cli.errors import CliError, Unreachable

TIMEOUT = httpx.Timeout(35.0, connect=10.0)
"""API Gateway answers within 30 s."""

RETRY_PAUSES = (0.5, 1.0, 2.0)
"""Seconds before each repetition of a request that only reads."""

PASSING = frozenset({502, 503, 504})
"""Statuses of faults that pass."""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

Sleep = Callable[[float], None]
Renew = Callable[[], str]


def on_loopback(url: str) -> bool:
    return urlsplit(url).hostname in LOOPBACK


def require_safe(url: str) -> str:
    """The URL without a slash at its end. Refuses one over which a token would travel in the clear."""
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and on_loopback(url)):
        return url.rstrip("/")
    raise CliError(f"{url!r} is not an https:// address.", mend="Give the API's full address, with https://.")


class Bearer(httpx.Auth):
    """Sends a token; when it is refused and can be renewed, renews it once and asks again."""

    def __init__(self, token: str, renew: Renew | None = None) -> None:
        self._token = token
        self._renew = renew

    def __repr__(self) -> str:
        return "Bearer(…)"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {self._token}"
        response = yield request
        if response.status_code == httpx.codes.UNAUTHORIZED and self._renew is not None:
            self._token = self._renew()
            request.headers["Authorization"] = f"Bearer {self._token}"
            yield request


def connect(url: str, *, auth: httpx.Auth | None, transport: httpx.BaseTransport | None) -> httpx.Client:
    """A client of one address. A proxy of the environment is not asked for loopback addresses."""
    return httpx.Client(
        base_url=url, auth=auth, timeout=TIMEOUT, transport=transport, trust_env=not on_loopback(url)
    )


def get(
    client: httpx.Client, path: str, *, params: dict[str, str | int], sleep: Sleep = time.sleep
) -> httpx.Response:
    """Read, repeating after faults that pass. Raises `Unreachable` when there is no answer in the end."""
    for pause in RETRY_PAUSES:
        try:
            response = client.get(path, params=params)
        except httpx.TransportError:
            sleep(pause)
            continue
        if response.status_code not in PASSING:
            return response
        sleep(pause)
    try:
        return client.get(path, params=params)
    except httpx.TransportError as error:
        raise Unreachable(
            f"{origin(client.base_url)} does not answer ({type(error).__name__}).",
            mend="Check the address and your network; in local mode, that `tensorant local up` is running.",
        ) from error


def send(client: httpx.Client, method: str, path: str, *, body: object | None) -> httpx.Response:
    """Change something, once. Raises `Unreachable`; the change may then have been made or not."""
    try:
        return client.request(method, path, json=body)
    except httpx.TransportError as error:
        raise Unreachable(
            f"{origin(client.base_url)} did not answer ({type(error).__name__}).",
            mend="The request may have been carried out: look before you repeat it.",
        ) from error


def origin(url: httpx.URL | str) -> str:
    """Scheme and host: all of a URL that may be shown, since a path or query can carry rights."""
    parts = urlsplit(str(url))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
