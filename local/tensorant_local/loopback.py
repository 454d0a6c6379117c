"""A small HTTP server on 127.0.0.1 that starts at once and stops at once.

The Lambda runtime API and the HTTP front stand on it. The standard library's own stop polls twice a
second and waits for idle connections; both would be felt here, where a cloud has a dozen servers.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOPBACK = "127.0.0.1"
METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})

_log = logging.getLogger(__name__)


class LoopbackHandler(BaseHTTPRequestHandler):
    """HTTP/1.1 with keep-alive; answers go out in one packet (else Nagle's algorithm costs 40 to 90 ms)."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def serve(self) -> None:
        """Answer one request of any method."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        """`do_GET` and its kin, which the base class looks for: they all lead to `serve`."""
        if name.removeprefix("do_") in METHODS:
            return self.serve
        raise AttributeError(name)

    def reply(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response_only(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        _log.debug(format, *args)


class LoopbackServer(ThreadingHTTPServer):
    """Holds a free port of 127.0.0.1 from its making, serves from `start` to `stop`, a thread per connection."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, handler: type[LoopbackHandler]) -> None:
        self._connections: set[socket.socket] = set()
        self._lock = Lock()
        self._stopping = False
        self._thread: Thread | None = None
        super().__init__((LOOPBACK, 0), handler)

    @property
    def address(self) -> str:
        """Host and port, as they stand in a URL."""
        return f"{LOOPBACK}:{self.server_port}"

    def start(self, name: str) -> None:
        self._thread = Thread(target=self._serve, name=name)
        self._thread.start()

    def stop(self) -> None:
        """End every connection and every thread; safe to repeat."""
        if self._stopping:
            return
        self._stopping = True
        if self._thread is not None:
            self._wake()
            self._thread.join()
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def _serve(self) -> None:
        while not self._stopping:
            self.handle_request()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            socket.create_connection((LOOPBACK, self.server_port), timeout=1).close()

    def server_bind(self) -> None:
        """Bind without the name look-up of HTTPServer, which can take seconds where there is no DNS."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.socket.getsockname()[1]

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002 - the base class's
        return not self._stopping

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base class's
        """A peer that hung up is no news; anything else is a defect of ours and is logged whole."""
        if not isinstance(sys.exception(), ConnectionError):
            _log.exception("request from %s failed", client_address)
