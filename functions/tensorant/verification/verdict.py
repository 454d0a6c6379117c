"""The verdict on an archive: every check in order, the first fault ends it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tensorant.contract import ArchiveDigest, Fault, JobSpec, Manifest, VerificationReport
from tensorant.verification.adapter_config import check_config, read_config
from tensorant.verification.archive import EdgeCache
from tensorant.verification.faults import Code, Unsound, shown, unsound
from tensorant.verification.manifest import check_digests, check_files, check_manifest, read_manifest
from tensorant.verification.safetensors_header import read_header
from tensorant.verification.streaming import stream_archive
from tensorant.verification.tensors import read_pairs, unmatched_targets
from tensorant.verification.values import ValueScan
from tensorant.verification.zip_layout import read_members

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorant.verification.archive import Archive
    from tensorant.verification.safetensors_header import Header
    from tensorant.verification.tensors import Pair
    from tensorant.verification.zip_layout import Member

CHECKS = ("zip", "manifest", "config", "header", "tensors", "hashes", "values")
"""In the order they are made; `VerificationReport.checks` names those that passed."""


@dataclass(frozen=True)
class Expected:
    """What the archive must be: whose, from which job, and which bytes."""

    run_id: str
    attempt: int | None
    """None accepts any attempt of the run."""
    spec: JobSpec
    archive: ArchiveDigest | None
    """As the object beside the archive states it; None if there is none, for instance on the trainer's disk."""


def verify(archive: Archive, expected: Expected) -> VerificationReport:
    """Whether the archive holds the finished, trained adapter that the run asked for.

    Reads the archive once as a whole, in chunks, and some small ranges before that; memory stays constant. No
    bytes make it raise: it raises only what the source raises.
    """
    findings = _Findings()
    try:
        _examine(EdgeCache(archive), expected, findings)
    except Unsound as found:
        return findings.report(found.fault)
    return findings.report(None)


@dataclass
class _Findings:
    """What is known so far."""

    checks: list[str] = field(default_factory=list)
    manifest: Manifest | None = None
    header: Header | None = None
    pairs: Sequence[Pair] = ()
    archive: ArchiveDigest | None = None
    warnings: tuple[str, ...] = ()

    def report(self, fault: Fault | None) -> VerificationReport:
        tensors = self.header.tensors if self.header else ()
        return VerificationReport(
            sound=fault is None,
            fault=fault,
            checks=tuple(self.checks),
            archive=self.archive,
            tensors=len(tensors),
            parameters=sum(tensor.elements for tensor in tensors),
            ranks=tuple(sorted({pair.rank for pair in self.pairs})),
            dtypes=tuple(sorted({tensor.dtype for tensor in tensors})),
            manifest=self.manifest,
            warnings=self.warnings,
        )


def _examine(archive: Archive, expected: Expected, findings: _Findings) -> None:
    _check_size(archive, expected)
    members = read_members(archive)
    findings.checks.append("zip")
    manifest = findings.manifest = read_manifest(archive, members)
    check_manifest(manifest, run_id=expected.run_id, attempt=expected.attempt, spec=expected.spec)
    check_files(manifest, members)
    findings.checks.append("manifest")
    try:
        header, pairs = _examine_description(archive, members, expected, findings)
    except Unsound:
        _prove(archive, members, manifest, expected, findings)
        raise
    scan = ValueScan(header)
    _prove(archive, members, manifest, expected, findings, scan)
    findings.checks.append("hashes")
    scan.check(pairs)
    findings.checks.append("values")


def _check_size(archive: Archive, expected: Expected) -> None:
    if expected.archive is not None and expected.archive.size != archive.size:
        raise unsound(
            Code.ARCHIVE_SIZE, f"The archive has {archive.size} bytes; {expected.archive.size} were uploaded."
        )


def _examine_description(
    archive: Archive, members: Sequence[Member], expected: Expected, findings: _Findings
) -> tuple[Header, Sequence[Pair]]:
    """Config, header and tensors, as far as they can be judged without the numbers."""
    config = check_config(read_config(archive, members), expected.spec)
    findings.checks.append("config")
    header = findings.header = read_header(archive, members)
    findings.checks.append("header")
    pairs = findings.pairs = read_pairs(header.tensors, config)
    findings.warnings = tuple(_warnings(unmatched_targets(pairs, config)))
    findings.checks.append("tensors")
    return header, pairs


def _warnings(unmatched: Sequence[str]) -> Iterator[str]:
    if unmatched:
        yield f"No module was adapted for these names in target_modules: {shown(list(unmatched))}."


def _prove(
    archive: Archive,
    members: Sequence[Member],
    manifest: Manifest,
    expected: Expected,
    findings: _Findings,
    scan: ValueScan | None = None,
) -> None:
    """Check every byte against CRCs and hashes.

    Damage comes before what it looks like: bytes that were hurt on their way can look like a bad training, but
    another upload mends them. So this is also done when the description has a fault, before that is reported.
    """
    digests = stream_archive(archive, members, scan)
    findings.archive = digests.archive
    check_digests(manifest, digests.members)
    if expected.archive is not None and expected.archive != digests.archive:
        raise unsound(Code.HASH_ARCHIVE, "The archive has another SHA-256 than was uploaded.")
