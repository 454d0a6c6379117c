"""The HTTP API of the embedded cloud: routes, JWT check, limits and payload 2.0, as API Gateway has them."""

from __future__ import annotations

import json
import logging
import uuid
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Any, cast

from tensorant_local import http_event
from tensorant_local.http_event import MalformedResponse, Request, Response
from tensorant_local.http_routes import HttpApi
from tensorant_local.jwt_authorizer import Unauthorized
from tensorant_local.loopback import LoopbackHandler, LoopbackServer

if TYPE_CHECKING:
    from tensorant_local.aws.running import LambdaInvoker
    from tensorant_local.http_routes import Route

MAXIMUM_REQUEST_BYTES = 10_000_000
MAXIMUM_EVENT_BYTES = 6_291_556
"""API Gateway takes 10 MB, Lambda 6 MB (of event, base64 included)."""

CONCURRENT_REQUESTS = 32
_DRAIN_BYTES = 1 << 20

_log = logging.getLogger(__name__)


class HttpFront:
    """Has its address from its making, since functions need it in their environment; answers from `serve` on.

    `invoke` runs a function by name. A request that outlasts its integration's time is answered; the
    function goes on, as behind API Gateway.
    """

    def __init__(self, invoke: LambdaInvoker) -> None:
        self._invoke = invoke
        self._server = _FrontServer(self)
        self._calls = ThreadPoolExecutor(CONCURRENT_REQUESTS, thread_name_prefix="http-front-call")
        self._api = HttpApi("none")

    @property
    def url(self) -> str:
        """Without a slash at its end, like API Gateway's `ApiEndpoint`."""
        return f"http://{self._server.address}"

    def serve(self, api: HttpApi) -> None:
        self._api = api
        self._server.start("http-front")

    def close(self) -> None:
        """Stop listening and wait for calls under way: close the Lambda host first to end them."""
        self._server.stop()
        self._calls.shutdown()

    def answer(self, request: Request) -> Response:
        found = self._api.find(request.method, request.path)
        if found is None:
            return Response.message(404, "Not Found")
        route, parameters = found
        try:
            claims = route.authorizer.claims(request.header("authorization")) if route.authorizer else None
        except Unauthorized as error:
            _log.info("%s %s: %s", request.method, request.path, error)
            return Response.message(401, "Unauthorized")
        event = http_event.event(
            request, api_id=self._api.id, route_key=route.key, parameters=parameters, claims=claims
        )
        return self._integrate(route, event)

    def _integrate(self, route: Route, event: dict[str, Any]) -> Response:
        payload = json.dumps(event).encode()
        if len(payload) > MAXIMUM_EVENT_BYTES:
            return Response.message(413, "Request Entity Too Large")
        call = self._calls.submit(self._invoke, route.function, payload)
        try:
            invocation = call.result(timeout=route.timeout_seconds)
        except FutureTimeoutError:
            return Response.message(503, "Service Unavailable")
        if invocation.error:
            return Response.message(500, "Internal Server Error")
        try:
            return http_event.response(invocation.payload)
        except MalformedResponse as error:
            _log.warning("%s: %s", route.function, error)
            return Response.message(500, "Internal Server Error")


class _FrontServer(LoopbackServer):
    def __init__(self, front: HttpFront) -> None:
        self.front = front
        super().__init__(_FrontHandler)


class _FrontHandler(LoopbackHandler):
    def serve(self) -> None:
        request_id = str(uuid.uuid4())
        answer = self._answer(request_id)
        self.send_response_only(answer.status)
        self.send_header("Date", self.date_time_string())
        self.send_header("Apigw-Requestid", request_id)
        for name, value in answer.headers.items():
            if name != "content-length":
                self.send_header(name, value)
        for cookie in answer.cookies:
            self.send_header("Set-Cookie", cookie)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _answer(self, request_id: str) -> Response:
        if self.headers.get("Transfer-Encoding"):
            self.close_connection = True
            return Response.message(411, "Length Required")
        size = int(self.headers.get("Content-Length") or 0)
        if size > MAXIMUM_REQUEST_BYTES:
            self._drain(size)
            return Response.message(413, "Request Entity Too Large")
        request = Request(
            id=request_id,
            method=self.command,
            target=self.path,
            headers=[(name.lower(), value) for name, value in self.headers.items()],
            body=self.body(),
            host=self.headers.get("Host") or "",
            source_ip=str(self.client_address[0]),
            protocol=self.request_version,
        )
        try:
            return cast("_FrontServer", self.server).front.answer(request)
        except Exception:
            _log.exception("%s %s", self.command, self.path)
            return Response.message(500, "Internal Server Error")

    def _drain(self, size: int) -> None:
        """Read what will not be used: a caller that still sends would miss the answer."""
        while size > 0:
            size -= len(self.rfile.read(min(size, _DRAIN_BYTES))) or size
