"""Files to and from storage, by presigned URL. The URL is a right: it is never shown, and our token never sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

from tensorant_cli.errors import CliError, Unreachable
from tensorant_cli.http import TIMEOUT, on_loopback, origin, require_safe

CHUNK_BYTES = 1 << 18

Advance = Callable[[int], object]
"""Told how many bytes more have passed."""


def upload(path: Path, url: str, *, advance: Advance, transport: httpx.BaseTransport | None = None) -> None:
    """PUT a file, streamed. Raises `CliError`; nothing is stored then."""
    length = path.stat().st_size
    with _client(url, transport) as client:
        try:
            response = client.put(
                url, content=_chunks(path, advance), headers={"Content-Length": str(length)}
            )
        except httpx.TransportError as error:
            raise _unreachable(url, error) from error
    if not response.is_success:
        raise _refused(url, response)


def download(url: str, path: Path, *, advance: Advance, transport: httpx.BaseTransport | None = None) -> None:
    """GET an object into a file, streamed. Raises `CliError`; a part of the file may be left then."""
    with _client(url, transport) as client:
        try:
            with client.stream("GET", url) as response, path.open("wb") as file:
                if not response.is_success:
                    response.read()
                    raise _refused(url, response)
                for chunk in response.iter_bytes(CHUNK_BYTES):
                    file.write(chunk)
                    advance(len(chunk))
        except httpx.TransportError as error:
            raise _unreachable(url, error) from error


def _client(url: str, transport: httpx.BaseTransport | None) -> httpx.Client:
    require_safe(url)
    return httpx.Client(timeout=TIMEOUT, transport=transport, trust_env=not on_loopback(url))


def _chunks(path: Path, advance: Advance) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
            advance(len(chunk))


def _unreachable(url: str, error: httpx.TransportError) -> Unreachable:
    return Unreachable(
        f"The storage at {origin(url)} does not answer ({type(error).__name__}).",
        mend="Check your network, then repeat the command.",
    )


def _refused(url: str, response: httpx.Response) -> CliError:
    """S3 answers errors in XML: `<Error><Code>…</Code>…`."""
    found = re.search(r"<Code>(\w+)</Code>", response.text)
    reason = f" ({found[1]})" if found else ""
    return CliError(
        f"The storage at {origin(url)} answered {response.status_code}{reason}.",
        mend="Repeat the command: the right to this file lasts only a while. If it stays, check the storage "
        "connection.",
    )
