"""`tensorant datasets …`: versions, uploaded once and immutable when valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import httpx
import typer

from tensorant_cli import transfer
from tensorant_cli.client import ApiClient
from tensorant_cli.formats import NONE, printable, size, utc, with_mend
from tensorant_cli.http import Sleep
from tensorant_cli.models import DatasetReport, DatasetVersion
from tensorant_cli.options import AsJson, OrganizationId, ProjectId, examples
from tensorant_cli.output import console, facts, note, say_json, table, transfer_bar, waiting
from tensorant_cli.session import Session
from tensorant_cli.waiting import wait_until

VALIDATION_SECONDS = 960.0
"""The worker is given a quarter of an hour, and some for its start."""

OPEN = frozenset({"uploading", "validating"})

app = typer.Typer(
    no_args_is_help=True, help="Dataset versions: JSON Lines of chats, prompts with completions, or texts."
)


@app.command(
    epilog=examples(
        "tensorant datasets upload demo/dataset.jsonl", "tensorant datasets upload chats.jsonl.zst --name v2"
    )
)
def upload(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(exists=True, dir_okay=False, readable=True, help="JSON Lines, plain, gzip or zstd."),
    ],
    *,
    organization_id: OrganizationId = None,
    project_id: ProjectId = None,
    name: Annotated[
        str | None, typer.Option(help="What people call it; by default the file's name.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Upload a file as a new version and wait until it is validated. Exit code 1 if it is not valid."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        project = session.project_id(organization, project_id)
        dataset = upload_dataset(
            session.client,
            organization,
            project,
            file,
            name=name or _stem(file),
            sleep=session.surroundings.sleep,
            transport=session.surroundings.transport,
        )
        if dataset.status == "valid":
            session.state.remember(organization, f"dataset-version-{project}", dataset.same_as or dataset.id)
        _show(dataset, as_json=as_json)
        if dataset.status != "valid":
            raise typer.Exit(1)


@app.command("list")
def list_(
    context: typer.Context,
    *,
    organization_id: OrganizationId = None,
    project_id: ProjectId = None,
    as_json: AsJson = False,
) -> None:
    """List a project's dataset versions."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        found = session.client.dataset_versions(organization, session.project_id(organization, project_id))
        if as_json:
            say_json(found)
            return
        rows = [
            (each.id, each.name, each.status, _rows(each), size(each.bytes), utc(each.created_at))
            for each in found
        ]
        console().print(table(None, ("Id", "Name", "Status", "Rows", "Size", "Created"), rows))


@app.command()
def show(
    context: typer.Context,
    dataset_version_id: Annotated[str, typer.Argument(metavar="VERSION", help="The version's id.")],
    *,
    organization_id: OrganizationId = None,
    as_json: AsJson = False,
) -> None:
    """Show a dataset version: what is in it, or its faults."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        _show(session.client.dataset_version(organization, dataset_version_id), as_json=as_json)


@app.command(epilog=examples("tensorant datasets preview data-1 --rows 2"))
def preview(
    context: typer.Context,
    dataset_version_id: Annotated[str, typer.Argument(metavar="VERSION", help="The version's id.")],
    *,
    rows: Annotated[int, typer.Option(min=1, max=100, help="How many, from the first.")] = 5,
    organization_id: OrganizationId = None,
    as_json: AsJson = False,
) -> None:
    """Show the first rows of a valid dataset version, one JSON object a line."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        found = session.client.preview_dataset_version(organization, dataset_version_id, rows=rows)
        if as_json:
            say_json(found)
            return
        for row in found.rows:
            console().print(
                printable(json.dumps(row, ensure_ascii=False)), markup=False, highlight=False, soft_wrap=True
            )
        if len(found.rows) < rows and found.more:
            note("The rows are long: fewer are shown than you asked for.")


def upload_dataset(
    client: ApiClient,
    organization_id: str,
    project_id: str,
    file: Path,
    *,
    name: str,
    sleep: Sleep,
    transport: httpx.BaseTransport | None = None,
) -> DatasetVersion:
    """Create a version, send the file, complete it and wait for the verdict: valid or invalid."""
    opened = client.create_dataset_version(organization_id, project_id, name=name)
    version_id = opened.dataset_version.id
    note(f"Dataset version: {version_id}")
    with transfer_bar(f"Uploading {file.name}", file.stat().st_size) as advance:
        transfer.upload(file, opened.upload_url, advance=advance, transport=transport)
    client.complete_dataset_version(organization_id, version_id)
    with waiting("Validating…"):
        return wait_until(
            lambda: client.dataset_version(organization_id, version_id),
            lambda dataset: dataset.status not in OPEN,
            what=f"The validation of {version_id}",
            seconds=VALIDATION_SECONDS,
            sleep=sleep,
            again=f"tensorant datasets show {version_id}",
        )


def _show(dataset: DatasetVersion, *, as_json: bool) -> None:
    if as_json:
        say_json(dataset)
        return
    out = console()
    shown = {
        "Dataset version": dataset.id,
        "Name": dataset.name,
        "Status": dataset.status,
        "Rows": _rows(dataset),
        "Size": size(dataset.bytes),
        "SHA-256": dataset.sha256 or NONE,
    }
    if dataset.same_as is not None:
        shown["Same content as"] = f"{dataset.same_as}: use that version"
    if dataset.report is not None:
        shown |= _report(dataset.report)
    if dataset.trouble is not None:
        shown["Trouble"] = with_mend(dataset.trouble.message, dataset.trouble.mend)
    out.print(facts(shown))
    if dataset.faults:
        rows = [(str(each.line or NONE), each.field, each.message, each.mend) for each in dataset.faults]
        out.print()
        out.print(table(None, ("Line", "Field", "Fault", "Mend"), rows))


def _rows(dataset: DatasetVersion) -> str:
    return NONE if dataset.rows is None else str(dataset.rows)


def _report(report: DatasetReport) -> dict[str, str]:
    lengths = report.lengths
    shown = {
        "Format": report.format,
        "As it was brought": f"{size(report.uploaded_bytes)}, compression: {report.compression}",
        "Tokens": f"about {report.tokens:,}",
        "Tokens a row": f"about {lengths.half:,} (half), {lengths.nine_in_ten:,} (90%), "
        f"{lengths.ninety_nine_in_hundred:,} (99%), {lengths.longest:,} (longest)",
        "Duplicate rows": f"{report.duplicates:,} among {report.compared_rows:,}",
    }
    if report.roles:
        shown["Messages"] = ", ".join(f"{count:,} {role}" for role, count in report.roles.items())
    if report.tool_rows:
        shown["Rows with tools"] = f"{report.tool_rows:,}"
    if report.unused_fields:
        shown["Fields not used"] = ", ".join(report.unused_fields)
    return shown


def _stem(file: Path) -> str:
    """`chats` for chats.jsonl.gz."""
    name = file.name
    for ending in (".gz", ".zst", ".zstd", ".jsonl", ".ndjson", ".json"):
        name = name.removesuffix(ending)
    return name or file.name
