"""A network volume's files, and the uploads that are under way to it."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from threading import Lock


@dataclass
class Upload:
    key: str
    parts: dict[int, bytes] = field(default_factory=dict)


@dataclass
class Volume:
    """Keys are paths. Threads may share it."""

    files: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def begin(self, key: str) -> str:
        upload_id = secrets.token_hex(16)
        with self._lock:
            self.uploads[upload_id] = Upload(key)
        return upload_id

    def complete(self, upload_id: str, numbers: list[int]) -> bytes | None:
        """The file; None if there is no such upload, or not all of its parts are there."""
        with self._lock:
            upload = self.uploads.get(upload_id)
            if upload is None or any(number not in upload.parts for number in numbers):
                return None
            del self.uploads[upload_id]
            content = b"".join(upload.parts[number] for number in numbers)
            self.files[upload.key] = content
            return content

    def entries(self, prefix: str, delimiter: str) -> list[tuple[str, bool]]:
        """Names under a prefix, in order; True for a folder that stands for everything in it."""
        with self._lock:
            found = sorted(key for key in self.files if key.startswith(prefix))
        entries: dict[str, bool] = {}
        for key in found:
            inner, parted, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            entries[f"{prefix}{inner}{delimiter}" if parted else key] = bool(parted)
        return list(entries.items())


def etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'
