"""Fetching an adapter: downloaded, verified here by the same code as in the control plane, unpacked."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import httpx

from tensorant.contract import ARCHIVE_NAME, JobSpec, VerificationReport
from tensorant.verification import Expected, FileArchive, verify
from tensorant_cli import transfer
from tensorant_cli.client import ApiClient
from tensorant_cli.errors import CliError, Unsound
from tensorant_cli.models import AdapterDownload
from tensorant_cli.output import transfer_bar


@dataclass(frozen=True)
class FetchedAdapter:
    """The unpacked adapter's directory, the archive inside it, and this machine's own verdict."""

    directory: Path
    archive: Path
    report: VerificationReport


def fetch_adapter(
    client: ApiClient,
    organization_id: str,
    run_id: str,
    directory: Path,
    *,
    transport: httpx.BaseTransport | None = None,
) -> FetchedAdapter:
    """Download a run's adapter into `directory`. Raises `Unsound`, keeping nothing, if it is not what the run made."""
    spec = client.run(organization_id, run_id).run.spec
    download = client.adapter(organization_id, run_id)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        return _fetch(download, spec, directory, transport)
    except OSError as error:
        raise CliError(
            f"{directory} can't be written: {error.strerror}.", mend="Choose another directory: --output DIR."
        ) from error


def _fetch(
    download: AdapterDownload, spec: JobSpec, directory: Path, transport: httpx.BaseTransport | None
) -> FetchedAdapter:
    partial = directory / f"{ARCHIVE_NAME}.part"
    try:
        total = download.report.archive.size if download.report.archive else None
        with transfer_bar(f"Downloading {ARCHIVE_NAME}", total) as advance:
            transfer.download(download.download_url, partial, advance=advance, transport=transport)
        report = _verified(partial, download, spec)
        archive = partial.replace(directory / ARCHIVE_NAME)
    finally:
        partial.unlink(missing_ok=True)
    with zipfile.ZipFile(archive) as members:  # verified: flat, known names and no more bytes than stated
        members.extractall(directory)
    return FetchedAdapter(directory, archive, report)


def _verified(path: Path, download: AdapterDownload, spec: JobSpec) -> VerificationReport:
    """Against the run's own job and the very bytes that were verified in the storage."""
    manifest = download.report.manifest
    expected = Expected(
        run_id=spec.run_id,
        attempt=manifest.attempt if manifest else None,
        spec=spec,
        archive=download.report.archive,
    )
    with FileArchive(path) as archive:
        report = verify(archive, expected)
    if report.fault is not None:
        raise Unsound(
            f"The downloaded archive is not the run's adapter: {report.fault.message} ({report.fault.code})",
            mend="Download it again; if it stays, the object in the storage was changed after the run.",
        )
    return report
