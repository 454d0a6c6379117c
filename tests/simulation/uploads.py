"""The archives that simulated trainers leave: built once for each job and flavour, since zipping takes time."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache

from tensorant.contract import JobSpec, Manifest
from tests.support.archives import adapter_files, archive_digest, lora_tensors, manifest_of, zip_of


class Flavour(StrEnum):
    SOUND = "sound"
    UNTRAINED = "untrained"
    """Every lora_B is zero."""
    TRUNCATED = "truncated"
    """The object is shorter than what the manifest states."""
    CHECKPOINT = "checkpoint"
    """Ended by the deadline before its last step."""
    MISSING = "missing"
    """Only the object beside the archive arrived."""
    NOTHING = "nothing"
    """Neither arrived, though the trainer believes that both did."""


@lru_cache(maxsize=512)
def built(spec: JobSpec, attempt: int, flavour: Flavour, upload: int = 1) -> tuple[bytes | None, bytes]:
    """The archive and the object beside it, which says which upload it is."""
    changes: dict[str, object] = {"attempt": attempt}
    tensors = None
    if flavour is Flavour.CHECKPOINT:
        changes |= {"status": "checkpoint", "stop_reason": "deadline", "steps_done": 12}
    if flavour is Flavour.UNTRAINED:
        tensors = lora_tensors(rank=spec.lora.rank, b=0.0)
    files = adapter_files(spec, tensors=tensors, manifest=changes)
    archive = zip_of(files)
    beside = Manifest.model_validate(
        {**manifest_of(spec, {}, **changes), "archive": archive_digest(archive), "upload": upload}
    )
    stored = {Flavour.TRUNCATED: archive[:-10], Flavour.MISSING: None}.get(flavour, archive)
    return stored, beside.model_dump_json().encode()
