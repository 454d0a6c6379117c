"""`ports.ObjectStore` and `ports.Staging` in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from tensorant.domain.connections import CheckItem, CheckVerdict, Connection
from tensorant.domain.errors import Configuration, Conflict, Storage
from tensorant.domain.storages import S3_ABILITIES, StorageAbilities
from tensorant.ports import ObjectFacts, ObjectStore, StorageCheck


@dataclass
class MemoryObjectStore:
    """`chunk` bytes at a time, so that readers meet more than one chunk; `abilities` as a check finds them."""

    objects: dict[str, bytes] = field(default_factory=dict)
    chunk: int = 7
    trouble: list[Exception] = field(default_factory=list)
    abilities: StorageAbilities = S3_ABILITIES

    def check(self) -> StorageCheck:
        if self.trouble:
            error = self.trouble.pop(0)
            item = CheckItem(name="write", verdict=CheckVerdict.FAILED, seen=str(error), mend="Mend it.")
            return StorageCheck(items=(item,), abilities=None)
        item = CheckItem(name="write", verdict=CheckVerdict.OK, seen="wrote and read an object")
        return StorageCheck(items=(item,), abilities=self.abilities)

    def head(self, key: str) -> ObjectFacts | None:
        self._raise()
        content = self.objects.get(key)
        return None if content is None else ObjectFacts(size=len(content), etag=etag(content))

    def read(self, key: str, offset: int, length: int, *, etag: str) -> bytes:
        return b"".join(self.stream(key, offset, length, etag=etag))

    def stream(self, key: str, offset: int, length: int, *, etag: str) -> Iterator[bytes]:
        if length <= 0:
            return
        self._raise()
        content = self.objects.get(key)
        if content is None or _etag(content) != etag:
            raise Storage("storage_failed", f"{key} is not the object that it was.")
        if offset >= len(content):
            raise Storage("storage_failed", f"{key} ends before byte {offset}.")
        wanted = content[offset : offset + length]
        yield from (wanted[start : start + self.chunk] for start in range(0, len(wanted), self.chunk))

    def get(self, key: str, *, limit: int) -> bytes | None:
        self._raise()
        content = self.objects.get(key)
        if content is not None and len(content) > limit:
            raise Storage("object_too_large", f"{key} is larger than {limit} bytes.")
        return content

    def keys(self, under: str) -> Iterator[str]:
        self._raise()
        yield from [key for key in self.objects if key.startswith(under)]

    def put(self, key: str, content: bytes | Iterable[bytes], *, replace: bool = True) -> None:
        self._raise()
        if not replace and key in self.objects:
            raise Conflict("object_exists", f"There is an object {key} already.")
        self.objects[key] = content if isinstance(content, bytes) else b"".join(content)

    def delete(self, key: str) -> None:
        self._raise()
        self.objects.pop(key, None)

    def presign_get(self, key: str, *, lasting: timedelta) -> str:
        self._require_presigned()
        return f"memory://get/{key}?seconds={lasting.total_seconds():.0f}"

    def presign_put(self, key: str, *, lasting: timedelta) -> str:
        self._require_presigned()
        return f"memory://put/{key}?seconds={lasting.total_seconds():.0f}"

    def _require_presigned(self) -> None:
        if not self.abilities.presigned:
            raise Configuration("storage_without_presigning", "The storage takes no presigned URLs.")

    def _raise(self) -> None:
        if self.trouble:
            raise self.trouble.pop(0)


def etag(content: bytes) -> str:
    """As S3 gives it to an object that was put at once."""
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


_etag = etag


@dataclass
class MemoryObjectStores:
    """Opens one storage for each connection; `trouble` is raised instead."""

    by_connection: Mapping[str, ObjectStore]
    trouble: Exception | None = None

    def open(self, connection: Connection) -> ObjectStore:
        if self.trouble is not None:
            raise self.trouble
        return self.by_connection[connection.id]


@dataclass
class MemoryStaging:
    """`later` replaces an object once it has been streamed, as a second upload would."""

    objects: dict[str, bytes] = field(default_factory=dict)
    later: dict[str, bytes] = field(default_factory=dict)
    chunk: int = 7

    def upload_url(self, key: str, *, lasting: timedelta) -> str:
        return f"memory://staging/{key}?seconds={lasting.total_seconds():.0f}"

    def stream(self, key: str) -> Iterator[bytes] | None:
        if key not in self.objects:
            return None
        content = self.objects[key]
        self.objects[key] = self.later.get(key, content)
        return iter([content[start : start + self.chunk] for start in range(0, len(content), self.chunk)])
