"""Running the verifier on bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorant.verification import Expected, verify
from tests.support.archives import ATTEMPT, RUN_ID, archive_digest, job_spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorant.contract import JobSpec, VerificationReport


class BytesArchive:
    """An archive in memory, streamed in chunks of any size; counts what is asked of it."""

    def __init__(self, data: bytes, chunk_bytes: int = 1000) -> None:
        self.data = data
        self.chunk_bytes = chunk_bytes
        self.reads = 0
        self.streams = 0

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, length: int) -> bytes:
        self.reads += 1
        return self.data[offset : offset + length]

    def stream(self, offset: int, length: int) -> Iterator[bytes]:
        self.streams += 1
        end = min(offset + length, len(self.data))
        for start in range(offset, end, self.chunk_bytes):
            yield self.data[start : min(start + self.chunk_bytes, end)]


def expected(
    spec: JobSpec | None = None, *, attempt: int | None = ATTEMPT, data: bytes | None = None
) -> Expected:
    """`data`: the bytes that the object beside the archive vouches for."""
    return Expected(
        run_id=RUN_ID,
        attempt=attempt,
        spec=spec or job_spec(),
        archive=None if data is None else archive_digest(data),
    )


def verdict_on(data: bytes, spec: JobSpec | None = None, *, chunk_bytes: int = 1000) -> VerificationReport:
    return verify(BytesArchive(data, chunk_bytes), expected(spec))


def code_of(data: bytes, spec: JobSpec | None = None) -> str:
    """The fault's code, or `sound`."""
    report = verdict_on(data, spec)
    return report.fault.code if report.fault else "sound"
