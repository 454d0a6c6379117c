"""What a check of storage does: it writes, reads, lists and deletes one small object, and tries what is optional."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING

from botocore.awsrequest import AWSRequest
from botocore.httpsession import URLLib3Session

from tensorant.adapters.s3.errors import Trouble, taken, translated
from tensorant.adapters.s3.uploads import WHOLE_BYTES, Target
from tensorant.domain.connections import CheckItem, CheckVerdict
from tensorant.domain.errors import Storage
from tensorant.ports import StorageCheck

if TYPE_CHECKING:
    from tensorant.adapters.s3.store import S3Store

PROBE = ".tensorant-check"
CONTENT = b"written by Tensorant's check of this storage; may be deleted"
OTHER = b"this must not have replaced the first"
LIMIT = 1000
URL_LASTS = timedelta(minutes=5)
SESSION_SECONDS = 30


def check(store: S3Store) -> StorageCheck:
    """Look at everything; a required step that fails ends it. Nothing stays behind."""
    probe = Probe(store, f"{PROBE}-{secrets.token_hex(8)}")  # two checks at once must not meet
    items: list[CheckItem] = []
    try:
        for name, step in probe.required():
            items.append(CheckItem(name=name, verdict=CheckVerdict.OK, seen=step()))
    except Storage as error:
        name = probe.required()[len(items)][0]
        items.append(CheckItem(name=name, verdict=CheckVerdict.FAILED, seen=error.message, mend=error.mend))
        probe.clear()
        return StorageCheck(items=tuple(items), abilities=None)
    found = {each.name: each.tried(probe) for each in OPTIONAL}
    probe.clear()
    abilities = replace(
        store.abilities,
        presigned=found["presigned_urls"].verdict is CheckVerdict.OK,
        conditional_writes=found["conditional_writes"].verdict is CheckVerdict.OK,
        multipart=found["multipart_uploads"].verdict is CheckVerdict.OK,
    )
    return StorageCheck(items=(*items, *found.values()), abilities=abilities)


@dataclass(frozen=True)
class Probe:
    """One small object, and what is done with it. Each step says what it saw, or raises `Storage`."""

    store: S3Store
    key: str

    def required(self) -> tuple[tuple[str, Callable[[], str]], ...]:
        return (("write", self.write), ("read", self.read), ("list", self.list), ("delete", self.delete))

    def write(self) -> str:
        self.store.put(self.key, CONTENT)
        return f"wrote an object under s3://{self.store.bucket}/{self.store.prefix}"

    def read(self) -> str:
        if self.store.get(self.key, limit=LIMIT) != CONTENT:
            raise Storage(
                "not_read_back",
                f"What was written to {self.store.bucket} did not come back.",
                mend="Check whether something changes or moves the bucket's objects.",
            )
        return "read it back"

    def list(self) -> str:
        if self.key not in self.store.keys(self.key):
            raise Storage(
                "not_listed",
                f"What was written to {self.store.bucket} is not in its listing.",
                mend="Check that the credentials may list the prefix.",
            )
        return "found it in the listing"

    def delete(self) -> str:
        self.store.delete(self.key)
        if self.store.head(self.key) is not None:
            raise Storage(
                "not_deleted",
                f"What was deleted from {self.store.bucket} is still there.",
                mend="Check whether the bucket holds its objects fast (object lock, retention).",
            )
        return "deleted it"

    # -- optional ----------------------------------------------------------------------------------------

    def presigned(self) -> str:
        """A real upload and a real download, each with nothing but its URL."""
        put = self.store.presigned("put_object", self.key, URL_LASTS)
        self._fetched("PUT", put, CONTENT)
        content = self._fetched("GET", self.store.presigned("get_object", self.key, URL_LASTS))
        if content != CONTENT:
            raise _unable("what was uploaded with a URL did not come back with another")
        return "uploaded and downloaded with presigned URLs"

    def _fetched(self, method: str, url: str, body: bytes = b"") -> bytes:
        session = self.store.session or URLLib3Session(timeout=SESSION_SECONDS)
        try:
            answer = session.send(AWSRequest(method=method, url=url, data=body).prepare())
        except Trouble as error:
            raise translated(error, f"answer a presigned {method}") from error
        if answer.status_code != HTTPStatus.OK:
            raise _unable(f"a presigned {method} was answered with {answer.status_code}")
        return bytes(answer.content)

    def conditional(self) -> str:
        """The same conditional write twice: the first must be done, and the second must not."""
        key = f"{self.key}-once"
        target = Target(
            client=self.store.client, bucket=self.store.bucket, key=self.store.prefix + key, new=True
        )
        try:
            target.put(CONTENT)
            target.put(OTHER)
        except Trouble as error:
            if not taken(error) or self.store.get(key, limit=LIMIT) != CONTENT:
                raise translated(error, "write conditionally") from error
        else:
            raise _unable("it replaced an object that it was told not to replace")
        return "refused to replace an object"

    def multipart(self) -> str:
        key = f"{self.key}-parts"
        target = Target(
            client=self.store.client, bucket=self.store.bucket, key=self.store.prefix + key, new=False
        )
        try:
            target.put_parts([CONTENT])
        except Trouble as error:
            raise translated(error, "take an upload in parts") from error
        if self.store.get(key, limit=LIMIT) != CONTENT:
            raise _unable("what was uploaded in parts did not come back")
        return "took an upload in parts"

    def clear(self) -> None:
        """Delete whatever may be left, until the store does not let us: one that hangs is not waited for again."""
        with contextlib.suppress(Storage):
            for key in (self.key, f"{self.key}-once", f"{self.key}-parts"):
                self.store.delete(key)


@dataclass(frozen=True, kw_only=True)
class Optional:
    """Something that a store may do without, and what follows if it does."""

    name: str
    step: Callable[[Probe], str]
    consequence: str

    def tried(self, probe: Probe) -> CheckItem:
        try:
            return CheckItem(name=self.name, verdict=CheckVerdict.OK, seen=self.step(probe))
        except Storage as error:
            return CheckItem(
                name=self.name, verdict=CheckVerdict.WARNING, seen=error.message, mend=self.consequence
            )


OPTIONAL = (
    Optional(
        name="presigned_urls",
        step=Probe.presigned,
        consequence="Projects can be bound to this storage, but no run can be launched on it yet: machines get "
        "presigned URLs only. If your storage has them, mend this and check again.",
    ),
    Optional(
        name="conditional_writes",
        step=Probe.conditional,
        consequence="Tensorant looks before it writes what must not be replaced; of two writers at the very same "
        "moment the later one wins. Nothing needs to be done.",
    ),
    Optional(
        name="multipart_uploads",
        step=Probe.multipart,
        consequence=f"Objects above {WHOLE_BYTES // 2**20} MiB can't be stored. Give the credentials the rights to "
        "multipart uploads, or use storage that has them, and check again.",
    ),
)


def _unable(why: str) -> Storage:
    return Storage("not_able", f"The storage can't do it: {why}.")
