"""An HTTP server on loopback that answers every request alike, and keeps what it was asked."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs


class CannedServer:
    """`answer` makes a status and a body; `asked` holds the forms that came, oldest first."""

    def __init__(self, answer: Callable[[], tuple[int, str]]) -> None:
        self.answer = answer
        self.asked: list[dict[str, str]] = []
        self.url = ""

    @contextlib.contextmanager
    def serving(self) -> Iterator[CannedServer]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        canned = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                canned.asked.append({name: values[0] for name, values in parse_qs(form).items()})
                status, body = canned.answer()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - see BaseHTTPRequestHandler
                pass

        return Handler
