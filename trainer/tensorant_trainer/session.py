"""The session file that the host leaves for its container."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import ValidationError

from tensorant.contract import TrainerExit, Wire
from tensorant_trainer.errors import TrainerError

if TYPE_CHECKING:
    from pathlib import Path


class SessionFile(Wire):
    """Where the agent API is, the right to call it, and until when this attempt may run."""

    url: str
    """The agent API with its version, for instance `https://…/agent/v1`."""
    session_token: str
    heartbeat_seconds: int
    deadline_at: datetime
    run_id: str
    attempt: int


def read_session(path: Path) -> SessionFile:
    """Raise `TrainerError` (spec) if the host left no readable session."""
    try:
        return SessionFile.model_validate_json(path.read_bytes())
    except OSError as error:
        raise TrainerError(TrainerExit.SPEC, f"{path} cannot be read: {error.strerror}.") from error
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, fault["loc"])) for fault in error.errors())
        raise TrainerError(TrainerExit.SPEC, f"{path} is not a session file: see {fields}.") from None
