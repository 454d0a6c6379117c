"""What the archive says of itself, against the run it should answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from tensorant.contract import MANIFEST_MEMBER, Manifest
from tensorant.verification.faults import Code, shown, unsound
from tensorant.verification.members import member_named, read_member
from tensorant.verification.strict_json import parse_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorant.contract import FileDigest, JobSpec
    from tensorant.verification.archive import Archive
    from tensorant.verification.zip_layout import Member

MAX_MANIFEST_BYTES = 1 << 20
FINISHED = frozenset({"finished", "max_steps", "early_stop"})
"""Stop reasons of a training that reached its end. An early stop lowers `steps_total` to where it agreed to end."""


def read_manifest(archive: Archive, members: Sequence[Member]) -> Manifest:
    member = member_named(members, MANIFEST_MEMBER, Code.MANIFEST_MISSING)
    if member.size > MAX_MANIFEST_BYTES:
        raise unsound(Code.MANIFEST_INVALID, f"The manifest has {member.size} bytes.")
    try:
        return Manifest.model_validate(parse_object(read_member(archive, member)), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise unsound(
            Code.MANIFEST_INVALID, f"The manifest's {shown(place)} is invalid: {first['msg']}."
        ) from error
    except ValueError as error:
        raise unsound(Code.MANIFEST_INVALID, f"The manifest can't be read: {error}.") from error


def check_manifest(
    manifest: Manifest, *, run_id: str | None, attempt: int | None, spec: JobSpec | None
) -> None:
    """This run, this attempt, finished, and made from this job and dataset, as far as they are known."""
    if run_id is not None and manifest.run_id != run_id:
        raise unsound(Code.MANIFEST_OTHER_RUN, f"The archive belongs to run {shown(manifest.run_id)}.")
    if attempt is not None and manifest.attempt != attempt:
        raise unsound(
            Code.MANIFEST_OTHER_ATTEMPT,
            f"The archive belongs to attempt {manifest.attempt}, not to attempt {attempt}.",
        )
    _check_complete(manifest)
    if spec is None:
        return
    if manifest.dataset_sha256 != spec.dataset.sha256:
        raise unsound(Code.MANIFEST_DATASET, "The adapter was trained on another dataset.")
    if (manifest.spec_sha256, manifest.base) != (spec.sha256(), spec.base):
        raise unsound(Code.MANIFEST_SPEC, "The adapter answers another job than this run's.")


def _check_complete(manifest: Manifest) -> None:
    steps = f"{manifest.steps_done} of {manifest.steps_total} steps"
    if manifest.status != "complete" or manifest.stop_reason not in FINISHED:
        raise unsound(
            Code.MANIFEST_INCOMPLETE,
            f"The archive is a checkpoint after {steps} ({manifest.stop_reason}).",
        )
    if not 1 <= manifest.steps_done == manifest.steps_total:
        raise unsound(Code.MANIFEST_INCOMPLETE, f"The training ended after {steps}.")


def check_files(manifest: Manifest, members: Sequence[Member]) -> None:
    """The manifest lists every other member with its size, and nothing more."""
    sizes = {member.name: member.size for member in members if member.name != MANIFEST_MEMBER}
    stated = {name: digest.size for name, digest in manifest.files.items()}
    if differing := sorted(name for name, _ in sizes.items() ^ stated.items()):
        raise unsound(
            Code.MANIFEST_FILES, f"Manifest and archive disagree about {shown(differing[0])}, or its size."
        )


def check_digests(manifest: Manifest, digests: dict[str, FileDigest]) -> None:
    """Every member that was hashed has the hash that the manifest states."""
    for name, stated in manifest.files.items():
        if digests.get(name, stated) != stated:
            raise unsound(Code.HASH_MEMBER, f"{name} has another SHA-256 than its manifest states.")
