"""A staged file over connections that break."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config

from tensorant.adapters.s3.staging import RESUMES, StagingBucket
from tensorant.domain.errors import Storage

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

FILE = bytes(range(256)) * 12


class BreakingStore:
    """Serves FILE from the byte that was asked for, and hangs up after `breaks[n]` bytes of the nth answer."""

    def __init__(self, *breaks: int) -> None:
        self.breaks = list(breaks)
        self.asked: list[tuple[str | None, str | None]] = []
        self.etag = '"first"'

    @contextmanager
    def client(self) -> Iterator[S3Client]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        client = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{server.server_port}",
            region_name="us-east-1",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        )
        try:
            yield client
        finally:
            client.close()
            server.shutdown()
            thread.join()
            server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        store = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                wanted, tag = self.headers.get("Range"), self.headers.get("If-Match")
                store.asked.append((wanted, tag))
                if tag not in {None, store.etag}:
                    self.send_response(412)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                start = int(re.findall(r"\d+", wanted)[0]) if wanted else 0
                self.send_response(206 if wanted else 200)
                self.send_header("Content-Length", str(len(FILE) - start))
                self.send_header("ETag", store.etag)
                self.end_headers()
                after = store.breaks.pop(0) if store.breaks else len(FILE)
                self.wfile.write(FILE[start : start + after])
                self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - see BaseHTTPRequestHandler
                pass

        return Handler


def read(store: BreakingStore) -> bytes:
    with store.client() as client:
        chunks = StagingBucket(client, "staging").stream("datasets/a")
        assert chunks is not None
        return b"".join(chunks)


def test_a_connection_that_breaks_is_followed_by_another_from_there() -> None:
    store = BreakingStore(1000, 500)

    assert read(store) == FILE
    assert store.asked[0] == (None, None)
    assert len(store.asked) == 3
    assert {tag for _, tag in store.asked[1:]} == {'"first"'}


def test_a_file_that_was_replaced_meanwhile_is_not_mixed_with_the_first() -> None:
    store = BreakingStore(1000)
    with store.client() as client:
        chunks = StagingBucket(client, "staging").stream("datasets/a")
        assert chunks is not None
        store.etag = '"second"'

        with pytest.raises(Storage, match="could not read the staged file: 412"):
            b"".join(chunks)


def test_a_connection_that_breaks_again_and_again_is_trouble() -> None:
    store = BreakingStore(*[10] * 20)

    with pytest.raises(Storage) as caught:
        read(store)

    assert caught.value.code == "storage_failed"
    assert len(store.asked) == 1 + RESUMES
