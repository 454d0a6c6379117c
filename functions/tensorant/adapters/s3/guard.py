"""Connections that go to allowed addresses only, whatever a name resolves to at that moment.

A name is looked up twice: by us, to refuse before anything is sent, and by the socket that connects. A name
whose answer changes in between (DNS rebinding) is caught at the socket itself: its peer's address is looked at
before the first byte, TLS included.
"""

from __future__ import annotations

import contextlib
import socket
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)
from botocore.exceptions import HTTPClientError
from botocore.httpsession import URLLib3Session

from tensorant.adapters.s3.errors import NotReachedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from botocore.awsrequest import AWSPreparedRequest, AWSRequest, AWSResponse
    from mypy_boto3_s3 import S3Client

    Verdict = Callable[[str], str | None]
    """Why an address is forbidden; None if it is not."""

CONNECT_SECONDS = 5


def require_allowed(host: str, addresses: Iterable[str], verdict: Verdict) -> None:
    """Raises `NotReachedError` if any of a host's addresses is forbidden."""
    for address in addresses:
        if reason := verdict(address):
            raise NotReachedError(host=host, reason=reason)


def resolved(host: str, port: int) -> list[str]:
    """Every address of a name, as the system's resolver tells now."""
    return [str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class _Guarded:
    """Mixed into botocore's connections: looks before and after connecting."""

    def __init__(self, *args: Any, verdict: Verdict, **options: Any) -> None:
        super().__init__(*args, **options)
        self._verdict = verdict

    def _new_conn(self) -> socket.socket:
        host, port = self.host, self.port  # type: ignore[attr-defined] # of the connection mixed into
        with contextlib.suppress(socket.gaierror):  # the connection's own look-up tells it better
            require_allowed(host, resolved(host, port), self._verdict)
        connected: socket.socket = super()._new_conn()  # type: ignore[misc]
        try:
            require_allowed(host, [connected.getpeername()[0]], self._verdict)
        except BaseException:
            connected.close()
            raise
        return connected


class _GuardedHttp(_Guarded, AWSHTTPConnection):  # type: ignore[misc] # the stubs disagree among themselves
    pass


class _GuardedHttps(_Guarded, AWSHTTPSConnection):  # type: ignore[misc]
    pass


class GuardedSession(URLLib3Session):
    """Sends as botocore does, without proxies. Raises `NotReachedError` instead of connecting elsewhere."""

    def __init__(self, verdict: Verdict, *, read_seconds: float) -> None:
        super().__init__(timeout=(CONNECT_SECONDS, read_seconds))  # type: ignore[arg-type] # the stub knows one
        self._manager.pool_classes_by_scheme = {  # type: ignore[attr-defined] # as URLLib3Session itself does
            "http": _pool(AWSHTTPConnectionPool, _GuardedHttp, verdict),
            "https": _pool(AWSHTTPSConnectionPool, _GuardedHttps, verdict),
        }

    def send(self, request: AWSRequest | AWSPreparedRequest) -> AWSResponse:
        try:
            return super().send(request)
        except HTTPClientError as error:
            inner = error.kwargs.get("error")
            if isinstance(inner, NotReachedError):
                raise inner from error  # as HTTPClientError it would be tried again
            raise


def guard(client: S3Client, session: GuardedSession) -> None:
    """Let every request of a client go through the session (botocore's event before-send answers for it)."""

    def answer(request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        return session.send(request)

    client.meta.events.register("before-send.s3", answer)  # type: ignore[arg-type] # which may answer


def _pool(pool: Any, connection: Any, verdict: Verdict) -> Any:
    """A pool class whose connections have a verdict."""

    class Pool(pool):  # type: ignore[misc] # one of botocore's two
        ConnectionCls = partial(connection, verdict=verdict)

    return Pool
