"""An agent API and a storage on loopback that record all that reaches them."""

from __future__ import annotations

import json
import threading
from collections import defaultdict, deque
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

from tensorant.contract import (
    Event,
    EventBatch,
    EventType,
    Grants,
    HostJob,
    JobSpec,
    LogChunk,
    Session,
    TokenExchange,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

TOKEN = "session-token-of-this-test"
IMAGE = "registry.example.com/trainer@sha256:" + "ab" * 32
SIGNATURE = "X-Amz-Signature=c0ffee"


class FakeAgent:
    """A context: serves while it is open. `faults[path]` answers that path's next calls with these codes."""

    def __init__(self, spec: JobSpec | None = None, dataset: bytes = b"") -> None:
        self.spec = spec
        self.dataset = dataset
        self.signed_headers = "host"
        self.storage = ""
        """Where presigned URLs lead; empty for this server itself."""
        self.stopping = False
        """Heartbeats ask to stop."""
        self.uploads_wanted = 1
        self.releases = False
        """The attempt is over once the uploads that are wanted were completed."""
        self.events: list[Event] = []
        self.heartbeats: list[dict[str, Any]] = []
        self.chunks: list[LogChunk] = []
        self.log: list[str] = []
        self.puts: list[str] = []
        self.put_headers: list[dict[str, str]] = []
        self.objects: dict[str, bytes] = {}
        self.faults: defaultdict[str, deque[int]] = defaultdict(deque)
        self.calls: list[str] = []
        self.unauthorized: list[str] = []
        self.exchanges: list[TokenExchange] = []
        self.seen = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.origin}/agent/v1"

    def object_url(self, name: str) -> str:
        return f"{self.storage or self.origin}/store/{name}?X-Amz-SignedHeaders={self.signed_headers}&{SIGNATURE}"

    def types(self) -> list[EventType]:
        return [event.type for event in self.events]

    def wait_for(self, kind: EventType, seconds: float) -> bool:
        return self.wait_until(lambda: kind in self.types(), seconds)

    def wait_until(self, happened: Callable[[], bool], seconds: float) -> bool:
        """Look again at every call; False if the time passes first."""
        with self.seen:
            return self.seen.wait_for(happened, timeout=seconds)

    def over(self) -> bool:
        return self.releases and self.types().count(EventType.COMPLETED) >= self.uploads_wanted

    # -- what it answers ---------------------------------------------------------------------------------

    def grants(self) -> Grants:
        assert self.spec is not None
        return Grants(
            spec=self.spec,
            attempt=1,
            dataset_url=self.object_url("dataset.jsonl"),
            archive_put_url=self.object_url("adapter.zip"),
            manifest_put_url=self.object_url("adapter.manifest.json"),
            expires_at=datetime.now(UTC) + timedelta(hours=1),
        )

    def session(self) -> Session:
        job = HostJob(
            run_id="run-1", attempt=1, image=IMAGE, deadline_at=datetime.now(UTC) + timedelta(hours=1)
        )
        return Session(session_token=TOKEN, heartbeat_seconds=1, job=job)

    def answer(self, path: str, body: bytes) -> dict[str, Any]:
        match path:
            case "/agent/v1/sessions":
                return self.session().model_dump(mode="json")
            case "/agent/v1/grants":
                return self.grants().model_dump(mode="json")
            case "/agent/v1/events":
                with self.seen:
                    self.events.extend(EventBatch.model_validate_json(body).events)
                    self.seen.notify_all()
                return {"accepted": len(self.events)}
            case "/agent/v1/heartbeats":
                self.heartbeats.append(json.loads(body))
                return {"stop": self.stopping, "uploads_wanted": self.uploads_wanted}
            case "/agent/v1/logs":
                self.chunks.append(LogChunk.model_validate_json(body))
                self.log.extend(self.chunks[-1].lines)
                return {}
        raise AssertionError(f"unexpected call: {path}")


def _handler_for(agent: FakeAgent) -> type[BaseHTTPRequestHandler]:
    class Bound(_Handler):
        fake = agent

    return Bound


class _Handler(BaseHTTPRequestHandler):
    fake: ClassVar[FakeAgent]
    protocol_version = "HTTP/1.1"
    timeout = 5

    def do_POST(self) -> None:
        body = self._body()
        if self.path == "/agent/v1/sessions":
            self.fake.exchanges.append(TokenExchange.model_validate_json(body))
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.fake.unauthorized.append(self.path)
            return self._send(401, b"")
        if (status := self._fault()) is not None:
            error = {"error": {"code": "fault", "message": "as the test wants it"}}
            return self._send(status, json.dumps(error).encode())
        return self._send(200, json.dumps(self.fake.answer(self.path, body)).encode())

    def do_GET(self) -> None:
        status = self._fault()
        self._send(200 if status is None else status, self.fake.dataset if status is None else b"")

    def do_PUT(self) -> None:
        body = self._body()
        status = self._fault()
        if status is not None:
            return self._send(status, b"")
        name = self._plain_path().rsplit("/", 1)[-1]
        self.fake.puts.append(name)
        self.fake.put_headers.append(dict(self.headers))
        self.fake.objects[name] = body
        return self._send(200, b"")

    def _plain_path(self) -> str:
        return self.path.partition("?")[0]

    def _fault(self) -> int | None:
        path = self._plain_path()
        if path == "/agent/v1/heartbeats" and self.fake.over():
            return 410
        with self.fake.seen:
            self.fake.calls.append(f"{self.command} {path}")
            self.fake.seen.notify_all()
            faults = self.fake.faults[path]
            return faults.popleft() if faults else None

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
        """Quiet."""
