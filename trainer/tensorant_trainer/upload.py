"""The archive goes to storage first, its manifest last: whoever sees the manifest may trust the archive."""

from __future__ import annotations

import logging
import time
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import httpx

from tensorant.contract import Manifest
from tensorant_trainer.archive import manifest_text
from tensorant_trainer.storage import Rights, StorageUnavailableError, http_client, raise_for, transfer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorant.contract import Grants

log = logging.getLogger(__name__)


def upload(
    archive: Path,
    manifest: Path,
    rights: Rights,
    *,
    number: int = 1,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Put both objects. Raises `TrainerError` (storage) when the storage stays away or refuses.

    A repeated upload says its number in the manifest, so that it is told apart from the one that was refused.
    """
    if number > 1:
        restate(manifest, number)
    with http_client() as http:

        def put_archive(grants: Grants) -> None:
            put(http, grants.archive_put_url, archive)

        def put_manifest(grants: Grants) -> None:
            put(http, grants.manifest_put_url, manifest)

        transfer(rights, put_archive, pause=pause)
        transfer(rights, put_manifest, pause=pause)


def restate(manifest: Path, number: int) -> None:
    """Write the upload's number into the manifest beside the archive."""
    stated = Manifest.model_validate_json(manifest.read_bytes()).model_copy(update={"upload": number})
    draft = manifest.with_name(f"{manifest.name}.part")
    draft.write_text(manifest_text(stated), encoding="utf-8")
    draft.replace(manifest)


def put(http: httpx.Client, url: str, path: Path) -> None:
    """One PUT of a whole file, streamed.

    A URL that is signed for a first write alone is answered 412 if the object is there: then an earlier
    PUT of ours arrived and only its answer was lost, for the key is this attempt's own.
    """
    headers = {"If-None-Match": "*"} if _signed_for_first_write(url) else {}
    try:
        with path.open("rb") as file:
            response = http.put(url, content=file, headers=headers)
    except httpx.TransportError as error:
        message = f"The storage broke off while we wrote {path.name}: {type(error).__name__}."
        raise StorageUnavailableError(message) from error
    if headers and response.status_code == HTTPStatus.PRECONDITION_FAILED:
        log.warning("%s is in storage already, from an earlier try.", path.name)
        return
    raise_for(response, f"write {path.name}")


def _signed_for_first_write(url: str) -> bool:
    """True if the signature covers `If-None-Match`, which must then be sent (SigV4: X-Amz-SignedHeaders)."""
    signed = parse_qs(urlsplit(url).query).get("X-Amz-SignedHeaders", [""])[0]
    return "if-none-match" in signed.lower().split(";")
