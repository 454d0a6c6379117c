"""The run's log: lines kept, without secrets, until the control plane has them."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from tensorant.contract import LogChunk

if TYPE_CHECKING:
    from tensorant_trainer.redaction import Redactor

MAX_KEPT_LINES = 10_000
"""While the control plane cannot be reached the oldest lines beyond this are lost; the container keeps all."""
MAX_CHUNK_LINES = 500
MAX_LINE_CHARACTERS = 2_000
"""With the chunk's limit, under a megabyte a call."""


class RunLog(logging.Handler):
    """A logging handler that hands out chunks; the same one until it is delivered."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self._redactor = redactor
        self._lines: deque[str] = deque(maxlen=MAX_KEPT_LINES)
        self._chunk: LogChunk | None = None
        self._seq = 0

    def emit(self, record: logging.LogRecord) -> None:
        text = self._redactor.clean(self.format(record))
        self._lines.extend(line[:MAX_LINE_CHARACTERS] for line in text.splitlines())

    def next_chunk(self) -> LogChunk | None:
        """The oldest undelivered lines; None if there are none. Asked by one thread alone."""
        if self._chunk is None and self._lines:
            count = min(len(self._lines), MAX_CHUNK_LINES)
            lines = tuple(self._lines.popleft() for _ in range(count))
            self._chunk = LogChunk(source="trainer", seq=self._seq, lines=lines)
        return self._chunk

    def delivered(self) -> None:
        """The last chunk has arrived (or never will): go on to the next."""
        self._chunk = None
        self._seq += 1
