"""An attempt's archive on its way: which upload is being verified, and which ones arrived damaged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

MAX_REPEATS = 2
"""How often another upload is asked for before the machine is stopped and its disk kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedUpload:
    """An upload that a fault of its transport made unsound. `manifest_etag` is of the object beside the archive."""

    manifest_etag: str
    code: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Uploads are told apart by the ETag of the object beside the archive, which is written last."""

    verifying: str | None = None
    """The upload whose verification began last. If it goes on without a verdict, nobody knows what it is worth."""
    refused: tuple[RefusedUpload, ...] = ()

    @property
    def uploads_wanted(self) -> int:
        """How often the trainer should have uploaded by now."""
        return 1 + len(self.refused)

    @property
    def may_repeat(self) -> bool:
        return len(self.refused) < MAX_REPEATS

    def begun(self, manifest_etag: str) -> Delivery:
        return replace(self, verifying=manifest_etag)

    def refusing(self, upload: RefusedUpload) -> Delivery:
        """With an upload refused; the same one counts once."""
        return (
            self if self.has_refused(upload.manifest_etag) else replace(self, refused=(*self.refused, upload))
        )

    def has_refused(self, manifest_etag: str) -> bool:
        return any(upload.manifest_etag == manifest_etag for upload in self.refused)


NOT_BEGUN = Delivery()
