"""Client of the agent API: what this machine may ask, and what it tells."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

import httpx
from pydantic import ValidationError

from tensorant.contract import (
    Event,
    EventBatch,
    GrantRequest,
    Grants,
    Heartbeat,
    HeartbeatReply,
    LogChunk,
    TrainerExit,
    Wire,
)
from tensorant_trainer.errors import TrainerError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from tensorant_trainer.session import SessionFile

Answer = TypeVar("Answer", bound=Wire)

TIMEOUT_SECONDS = 35.0
"""API Gateway answers within 30 s; waiting less would repeat calls that are still under way."""
_TRY_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_OVER = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.GONE})


class AgentUnavailableError(TrainerError):
    """No answer, or one that promises a better one later."""

    def __init__(self, message: str) -> None:
        super().__init__(TrainerExit.STORAGE, message)


class AttemptOverError(TrainerError):
    """The session is no longer honoured: the attempt is over, and nothing more can be told."""

    def __init__(self) -> None:
        super().__init__(TrainerExit.INTERRUPTED, "The control plane says that this attempt is over.")


class AgentRefusedError(TrainerError):
    """The request itself is refused; repeating it would not help."""

    def __init__(self, message: str) -> None:
        super().__init__(TrainerExit.SPEC, message)


class AgentClient:
    """One attempt's voice. Every call is made once: who calls decides whether to repeat it.

    Raises the three errors above.
    """

    def __init__(self, session: SessionFile) -> None:
        self._http = httpx.Client(
            base_url=session.url,
            headers={"Authorization": f"Bearer {session.session_token}"},
            timeout=TIMEOUT_SECONDS,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def ask_grants(self, archive_bytes: int | None = None) -> Grants:
        return self._asked("/grants", GrantRequest(archive_bytes=archive_bytes), Grants)

    def send_events(self, events: Sequence[Event]) -> None:
        self._post("/events", EventBatch(events=tuple(events)))

    def send_heartbeat(self, heartbeat: Heartbeat) -> HeartbeatReply:
        return self._asked("/heartbeats", heartbeat, HeartbeatReply)

    def send_log(self, chunk: LogChunk) -> None:
        self._post("/logs", chunk)

    def _asked(self, path: str, body: Wire, answer: type[Answer]) -> Answer:
        response = self._post(path, body)
        try:
            return answer.model_validate_json(response.content)
        except ValidationError as error:
            fields = ", ".join(".".join(map(str, fault["loc"])) for fault in error.errors())
            message = f"The agent API's answer to {path} is not understood: see {fields}."
            raise AgentRefusedError(message) from None

    def _post(self, path: str, body: Wire) -> httpx.Response:
        try:
            response = self._http.post(
                path, content=body.model_dump_json(), headers={"Content-Type": "application/json"}
            )
        except httpx.TransportError as error:
            message = f"The agent API cannot be reached for {path}: {type(error).__name__}."
            raise AgentUnavailableError(message) from error
        _raise_for(response, path)
        return response


def _raise_for(response: httpx.Response, path: str) -> None:
    if response.is_success:
        return
    if response.status_code in _OVER:
        raise AttemptOverError
    message = f"The agent API answered {response.status_code} to {path}: {_told(response)}"
    if response.is_server_error or response.status_code in _TRY_AGAIN:
        raise AgentUnavailableError(message)
    raise AgentRefusedError(message)


def _told(response: httpx.Response) -> str:
    """The message of the API's error shape, or the beginning of whatever came instead."""
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return response.text[:200]
