"""Objects of a folder over loopback, as S3 serves them: HEAD and GET with ranges and ETags. `python -m bench._objects DIR`."""

from __future__ import annotations

import re
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

RANGE = re.compile(r"bytes=(\d+)-(\d+)")


class Objects(BaseHTTPRequestHandler):
    """Path-style addresses: /bucket/key. The kernel copies files to sockets, so that the server costs little."""

    protocol_version = "HTTP/1.1"
    folder: ClassVar[Path]

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        path = self.folder / self.path.partition("?")[0].rpartition("/")[2]
        with path.open("rb") as file:
            size = path.stat().st_size
            asked = RANGE.fullmatch(self.headers.get("Range", ""))
            first, last = (int(asked[1]), min(int(asked[2]), size - 1)) if asked else (0, size - 1)
            self.send_response(HTTPStatus.PARTIAL_CONTENT if asked else HTTPStatus.OK)
            self.send_header("Content-Length", str(last - first + 1))
            self.send_header("ETag", f'"{size:x}"')
            if asked:
                self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
            self.end_headers()
            if with_body:
                self.wfile.flush()
                self.connection.sendfile(file, first, last - first + 1)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
        """Quiet."""


if __name__ == "__main__":
    Objects.folder = Path(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Objects)
    print(server.server_address[1], flush=True)
    server.serve_forever()
