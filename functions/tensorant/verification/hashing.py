"""SHA-256 beside the rest of the work: OpenSSL leaves the interpreter's lock while it hashes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

INLINE_BYTES = 1 << 15
"""Below this, handing over costs more than hashing."""


class Hasher:
    """A running hash, fed in order. At most one piece is on its way, so that memory stays bounded."""

    def __init__(self, pool: ThreadPoolExecutor | None = None) -> None:
        self._sha256 = hashlib.sha256()
        self._pool = pool
        self._under_way: Future[None] | None = None

    def update(self, data: bytes) -> None:
        self._settle()
        if self._pool is None or len(data) < INLINE_BYTES:
            self._sha256.update(data)
        else:
            self._under_way = self._pool.submit(self._sha256.update, data)

    def hexdigest(self) -> str:
        self._settle()
        return self._sha256.hexdigest()

    def _settle(self) -> None:
        if self._under_way is not None:
            self._under_way.result()
            self._under_way = None
