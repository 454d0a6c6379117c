"""The verdict on an archive: every check in order, the first fault ends it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tensorant.contract import (
    ArchiveDigest,
    Fault,
    FileDigest,
    JobSpec,
    Manifest,
    VerificationReport,
)
from tensorant.verification.adapter_config import AdapterConfig, Asked, check_config, read_config
from tensorant.verification.archive import EdgeCache
from tensorant.verification.coverage import check_coverage
from tensorant.verification.faults import Code, Unsound, unsound
from tensorant.verification.manifest import check_digests, check_files, check_manifest, read_manifest
from tensorant.verification.safetensors_header import read_header
from tensorant.verification.serving import warnings
from tensorant.verification.streaming import stream_archive
from tensorant.verification.tensors import Contents, read_contents
from tensorant.verification.values import ValueScan
from tensorant.verification.zip_layout import read_members
from tensorant.verification.zip_names import WEIGHTS_MEMBER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorant.verification.archive import Archive
    from tensorant.verification.safetensors_header import Header
    from tensorant.verification.zip_layout import Member

CHECKS = ("zip", "manifest", "config", "header", "tensors", "hashes", "values")
"""In the order they are made; `VerificationReport.checks` names those that passed."""


@dataclass(frozen=True)
class Expected:
    """What the archive must be: whose, from which job, and which bytes. None where nobody can tell."""

    run_id: str | None = None
    attempt: int | None = None
    spec: JobSpec | None = None
    """Without it the archive is held against its own manifest and config."""
    archive: ArchiveDigest | None = None
    """As the object beside the archive states it; None if there is none, for instance on the trainer's disk."""
    every_hash: bool = False
    """Hash the weights also where the hash of the whole archive proves them: once in the trainer, where they are made."""


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
    config: AdapterConfig | None = None
    contents: Contents | None = None
    archive: ArchiveDigest | None = None
    files: Mapping[str, FileDigest] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def report(self, fault: Fault | None) -> VerificationReport:
        tensors = self.header.tensors if self.header else ()
        pairs = self.contents.pairs if self.contents else ()
        return VerificationReport(
            sound=fault is None,
            fault=fault,
            checks=tuple(self.checks),
            archive=self.archive,
            files=dict(self.files),
            tensors=len(tensors),
            parameters=sum(tensor.elements for tensor in tensors),
            modules=len(pairs),
            base_modules=self._base_modules(),
            ranks=tuple(sorted({pair.rank for pair in pairs})),
            dtypes=tuple(sorted({tensor.dtype for tensor in tensors})),
            variant=_variant(self.config) if self.config else "",
            norms=self.manifest.norms if self.manifest else None,
            manifest=self.manifest and self.manifest.model_copy(update={"base_modules": None}),
            warnings=self.warnings,
        )

    def _base_modules(self) -> int | None:
        listed = self.manifest.base_modules if self.manifest else None
        return len(listed.linear) if listed else None


def _variant(config: AdapterConfig) -> str:
    kind = "DoRA" if config.use_dora else "LoRA"
    if config.use_rslora:
        kind = f"rs{kind}"
    beside = [*(["biases"] if config.lora_bias else []), *config.modules_to_save]
    return f"{kind} with {', '.join(beside)}" if beside else kind


def _examine(archive: Archive, expected: Expected, findings: _Findings) -> None:
    _check_size(archive, expected)
    members = read_members(archive)
    findings.checks.append("zip")
    manifest = findings.manifest = read_manifest(archive, members)
    check_manifest(manifest, run_id=expected.run_id, attempt=expected.attempt, spec=expected.spec)
    check_files(manifest, members)
    findings.checks.append("manifest")
    try:
        header, contents = _examine_description(archive, members, manifest, expected, findings)
    except Unsound:
        _prove(archive, members, manifest, expected, findings)
        raise
    scan = ValueScan(header)
    _prove(archive, members, manifest, expected, findings, scan)
    findings.checks.append("hashes")
    scan.check(contents)
    findings.checks.append("values")


def _check_size(archive: Archive, expected: Expected) -> None:
    if expected.archive is not None and expected.archive.size != archive.size:
        raise unsound(
            Code.ARCHIVE_SIZE, f"The archive has {archive.size} bytes; {expected.archive.size} were uploaded."
        )


def _examine_description(
    archive: Archive,
    members: Sequence[Member],
    manifest: Manifest,
    expected: Expected,
    findings: _Findings,
) -> tuple[Header, Contents]:
    """Config, header and tensors, as far as they can be judged without the numbers."""
    stated = read_config(archive, members)
    asked = Asked.in_job(expected.spec) if expected.spec else Asked.by_itself(stated, manifest.base)
    config = findings.config = check_config(stated, asked)
    findings.checks.append("config")
    header = findings.header = read_header(archive, members)
    findings.checks.append("header")
    contents = findings.contents = read_contents(header.tensors, config)
    if manifest.base_modules is not None:
        check_coverage(contents, config, manifest.base_modules)
    findings.warnings = tuple(warnings(contents, config, manifest.metrics))
    findings.checks.append("tensors")
    return header, contents


def _prove(
    archive: Archive,
    members: Sequence[Member],
    manifest: Manifest,
    expected: Expected,
    findings: _Findings,
    scan: ValueScan | None = None,
) -> None:
    """Check every byte against CRCs and hashes.

    Hashing costs more than all the rest, so the weights are not hashed twice: where the archive's own hash is stated,
    it proves each member as the trainer packed it. Where nobody states it, the manifest's hashes are the proof.

    Damage comes before what it looks like: bytes that were hurt on their way can look like a bad training, but
    another upload mends them. So this is also done when the description has a fault, before that is reported.
    """
    proved = (
        {WEIGHTS_MEMBER} & manifest.files.keys() if expected.archive and not expected.every_hash else set()
    )
    digests = stream_archive(archive, members, scan, unhashed=proved)
    findings.archive, findings.files = digests.archive, digests.members
    if expected.archive is not None and expected.archive != digests.archive:
        raise unsound(Code.HASH_ARCHIVE, "The archive has another SHA-256 than was uploaded.")
    check_digests(manifest, digests.members)
    findings.files = {**digests.members, **{name: manifest.files[name] for name in proved}}
