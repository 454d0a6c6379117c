"""`tensorant connections …`: compute and storage of the organization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from tensorant_cli.client import ApiClient
from tensorant_cli.credentials import aws_credentials
from tensorant_cli.errors import CliError
from tensorant_cli.formats import NONE, gib, usd_per_hour, utc
from tensorant_cli.http import Sleep
from tensorant_cli.models import Catalog, Connection, GpuType
from tensorant_cli.options import AsJson, OrganizationId, Wait, examples
from tensorant_cli.output import console, facts, note, say_json, table, waiting
from tensorant_cli.session import Session
from tensorant_cli.waiting import wait_until

CHECK_SECONDS = 180.0
"""A check is given two minutes, and some for its start."""

app = typer.Typer(no_args_is_help=True, help="Connections to compute (aws) and storage (s3).")
create = typer.Typer(
    no_args_is_help=True,
    help="Save a connection and check it. Checks never start a machine. Credentials come from "
    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or are asked for.",
)
app.add_typer(create, name="create")

ConnectionId = Annotated[str, typer.Argument(metavar="CONNECTION", help="The connection's id.")]
Name = Annotated[
    str | None, typer.Option(help="What people call it; by default its kind.", show_default=False)
]
Region = Annotated[
    str | None, typer.Option(metavar="REGION", help="For instance us-east-1.", show_default=False)
]


@create.command(
    "aws",
    epilog=examples(
        "tensorant connections create aws --region us-east-1 --image-id ami-0123456789abcdef0 "
        "--subnet-id subnet-0123456789abcdef0 --security-group-id sg-0123456789abcdef0",
        "In local mode: tensorant connections create aws",
    ),
)
def create_aws(
    context: typer.Context,
    *,
    organization_id: OrganizationId = None,
    name: Name = None,
    region: Region = None,
    image_id: Annotated[
        str | None, typer.Option(metavar="AMI", help="The GPU image, ami-….", show_default=False)
    ] = None,
    subnet_ids: Annotated[
        list[str] | None,
        typer.Option(
            "--subnet-id",
            "--subnet-ids",
            metavar="SUBNET",
            help="A private subnet with outbound access; repeat it for more.",
            show_default=False,
        ),
    ] = None,
    security_group_id: Annotated[
        str | None, typer.Option(metavar="GROUP", help="Of the same VPC, sg-….", show_default=False)
    ] = None,
    key_name: Annotated[
        str | None, typer.Option(help="An EC2 key pair, for recovery over SSH.", show_default=False)
    ] = None,
    instance_profile_arn: Annotated[
        str | None,
        typer.Option(metavar="ARN", help="For recovery over Systems Manager.", show_default=False),
    ] = None,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Connect an AWS account to train on its EC2 GPUs."""
    settings = {
        "name": name,
        "region": region,
        "image_id": image_id,
        "subnet_ids": subnet_ids,
        "security_group_id": security_group_id,
        "key_name": key_name,
        "instance_profile_arn": instance_profile_arn,
    }
    required = ("region", "image_id", "subnet_ids", "security_group_id")
    with Session.of(context) as session:
        body = _body(session, "aws", settings, required=required)
        _create(session, organization_id, body, wait=wait, as_json=as_json)


@create.command(
    "s3",
    epilog=examples(
        "tensorant connections create s3 --region us-east-1 --bucket example-adapters --prefix tensorant/",
        "In local mode: tensorant connections create s3",
    ),
)
def create_s3(
    context: typer.Context,
    *,
    organization_id: OrganizationId = None,
    name: Name = None,
    region: Region = None,
    bucket: Annotated[str | None, typer.Option(help="Its name.", show_default=False)] = None,
    prefix: Annotated[
        str | None, typer.Option(help="Everything is kept under it.", show_default=False)
    ] = None,
    addressing_style: Annotated[
        str | None, typer.Option(help="virtual (the API's default) or path.", show_default=False)
    ] = None,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Connect a bucket: datasets and adapters live there."""
    settings = {
        "name": name,
        "region": region,
        "bucket": bucket,
        "prefix": prefix,
        "addressing_style": addressing_style,
    }
    with Session.of(context) as session:
        body = _body(session, "s3", settings, required=("region", "bucket"))
        _create(session, organization_id, body, wait=wait, as_json=as_json)


@app.command("list")
def list_(context: typer.Context, *, organization_id: OrganizationId = None, as_json: AsJson = False) -> None:
    """List the organization's connections."""
    with Session.of(context) as session:
        found = session.client.connections(session.organization_id(organization_id))
        if as_json:
            say_json(found)
            return
        rows = [(each.id, each.kind, each.name, each.status, utc(each.checked_at)) for each in found]
        console().print(table(None, ("Id", "Kind", "Name", "Status", "Checked"), rows))


@app.command()
def show(
    context: typer.Context,
    connection_id: ConnectionId,
    *,
    organization_id: OrganizationId = None,
    as_json: AsJson = False,
) -> None:
    """Show a connection with what its last check saw."""
    with Session.of(context) as session:
        _show(
            session.client.connection(session.organization_id(organization_id), connection_id),
            as_json=as_json,
        )


@app.command()
def rotate(
    context: typer.Context,
    connection_id: ConnectionId,
    *,
    organization_id: OrganizationId = None,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Replace a connection's credentials, from the environment or asked for, and check with them.

    Use an identity of the same account: another one can't release the machines that this one has made.
    """
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        kind = session.client.connection(organization, connection_id).kind
        credentials = aws_credentials(session.profile, kind, session.surroundings.environ)
        connection = session.client.replace_credentials(organization, connection_id, credentials)
        _finish(session, organization, connection, wait=wait, as_json=as_json)


@app.command()
def check(
    context: typer.Context,
    connection_id: ConnectionId,
    *,
    organization_id: OrganizationId = None,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Check a connection again. Exit code 1 if it can't be used."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        connection = session.client.check_connection(organization, connection_id)
        _finish(session, organization, connection, wait=wait, as_json=as_json)


@app.command(
    epilog=examples("tensorant connections gpus", "tensorant connections gpus conn-0123456789abcdef")
)
def gpus(
    context: typer.Context,
    connection_id: Annotated[
        str | None,
        typer.Argument(metavar="CONNECTION", help="By default the aws one used last.", show_default=False),
    ] = None,
    *,
    organization_id: OrganizationId = None,
    as_json: AsJson = False,
) -> None:
    """List the GPU types of a connection with their prices, as its last check found them."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        chosen = session.connection_id(organization, connection_id, kind="aws", option="CONNECTION")
        catalog = session.client.gpus(organization, chosen)
        if as_json:
            say_json(catalog)
            return
        _show_catalog(catalog)


def wait_for_check(
    client: ApiClient, organization_id: str, connection_id: str, *, sleep: Sleep
) -> Connection:
    """The connection once its check has ended, well or not."""
    return wait_until(
        lambda: client.connection(organization_id, connection_id),
        lambda connection: connection.status != "checking",
        what=f"The check of {connection_id}",
        seconds=CHECK_SECONDS,
        sleep=sleep,
        again=f"tensorant connections show {connection_id}",
    )


def _body(
    session: Session, kind: str, settings: Mapping[str, Any], *, required: tuple[str, ...]
) -> dict[str, Any]:
    """The request: options first, then what local mode offers. Raises `CliError` for what is missing."""
    local = {
        name: value
        for name, value in session.profile.connections.get(kind, {}).items()
        if name not in {"kind", "credentials"}
    }
    assumed = [name for name in local if settings.get(name) is None]
    if assumed:
        note(f"From local mode: {', '.join(assumed)}.")
    given = {name: value for name, value in settings.items() if value is not None}
    body = {"name": kind, **local, **given, "kind": kind}
    missing = [option for option in required if not body.get(option)]
    if missing:
        names = ", ".join(f"--{name.replace('_', '-').removesuffix('s')}" for name in missing)
        raise CliError(f"Not given: {names}.", mend=f"See tensorant connections create {kind} --help.")
    body["credentials"] = aws_credentials(session.profile, kind, session.surroundings.environ)
    return body


def _create(
    session: Session, organization_id: str | None, body: Mapping[str, Any], *, wait: bool, as_json: bool
) -> None:
    organization = session.organization_id(organization_id)
    connection = session.client.create_connection(organization, body)
    session.state.remember(organization, f"connection-{connection.kind}", connection.id)
    note(f"Saved the connection {connection.name}: {connection.id}")
    _finish(session, organization, connection, wait=wait, as_json=as_json)


def _finish(
    session: Session, organization_id: str, connection: Connection, *, wait: bool, as_json: bool
) -> None:
    if wait:
        with waiting(f"Checking {connection.name}…"):
            connection = wait_for_check(
                session.client, organization_id, connection.id, sleep=session.surroundings.sleep
            )
    _show(connection, as_json=as_json)
    if connection.status == "failed":
        raise typer.Exit(1)


def _show(connection: Connection, *, as_json: bool) -> None:
    if as_json:
        say_json(connection)
        return
    out = console()
    out.print(
        facts(
            {
                "Connection": connection.id,
                "Name": connection.name,
                "Kind": connection.kind,
                "Status": connection.status,
                "Account": connection.account_id or NONE,
                "Checked": utc(connection.checked_at),
                **_settings(connection),
            }
        )
    )
    if connection.checks:
        rows = [(each.name, each.verdict, each.seen, each.mend) for each in connection.checks]
        out.print()
        out.print(table(None, ("Check", "Verdict", "Seen", "Mend"), rows))


def _settings(connection: Connection) -> dict[str, str]:
    return {
        name: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in connection.settings.items()
        if value and name != "kind"
    }


def _show_catalog(catalog: Catalog) -> None:
    def price(each: GpuType) -> tuple[bool, Any, str]:
        return (each.usd_per_hour is None, each.usd_per_hour or 0, each.instance_type)

    rows = [
        (
            each.instance_type,
            each.gpu,
            gib(each.gpu_memory_mib),
            str(each.vcpus),
            gib(each.memory_mib),
            usd_per_hour(each.usd_per_hour),
            ", ".join(each.zones),
        )
        for each in sorted(catalog.types, key=price)
    ]
    columns = ("Type", "GPU", "GPU memory", "vCPUs", "Memory", "Price", "Zones")
    console().print(table(None, columns, rows))
    note(
        f"Prices of {utc(catalog.priced_at)}, without the disk. Not usable here: {len(catalog.excluded)} types; "
        "--json says why."
    )
