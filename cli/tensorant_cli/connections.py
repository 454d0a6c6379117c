"""`tensorant connections …`: compute and storage of the organization."""

from __future__ import annotations

from typing import Annotated

import typer

from tensorant_cli import checking, connection_creation, connector
from tensorant_cli import connection_options as option
from tensorant_cli.checking import finish
from tensorant_cli.connection_views import catalog_table, connections_table
from tensorant_cli.credentials import Keys
from tensorant_cli.errors import CliError
from tensorant_cli.formats import utc
from tensorant_cli.models import Connection
from tensorant_cli.options import AsJson, OrganizationId, Wait, examples, given
from tensorant_cli.output import console, note, say, say_json
from tensorant_cli.session import Session

app = typer.Typer(no_args_is_help=True, help="Connections to compute (aws) and storage (s3, runpod_storage).")
app.add_typer(connection_creation.app, name="create")
app.command(epilog=connector.POLICY_EXAMPLES)(connector.policy)
app.command(epilog=connector.CONNECTOR_EXAMPLES)(connector.connector)


@app.command("list")
def list_(context: typer.Context, *, organization_id: OrganizationId = None, as_json: AsJson = False) -> None:
    """List the organization's connections."""
    with Session.of(context) as session:
        found = session.client.connections(session.organization_id(organization_id))
        if as_json:
            say_json(found)
            return
        console().print(connections_table(found))


@app.command()
def show(
    context: typer.Context,
    connection_id: option.ConnectionId,
    *,
    organization_id: OrganizationId = None,
    as_json: AsJson = False,
) -> None:
    """Show a connection with its warnings and what its last check saw."""
    with Session.of(context) as session:
        found = session.client.connection(session.organization_id(organization_id), connection_id)
        checking.show(session, found, as_json=as_json)


@app.command(
    epilog=examples(
        "tensorant connections edit conn-0123456789abcdef --image-id ami-0123456789abcdef0",
        "tensorant connections edit conn-… --subnet-id subnet-0a1 --subnet-id subnet-0b2",
    )
)
def edit(
    context: typer.Context,
    connection_id: option.ConnectionId,
    *,
    organization_id: OrganizationId = None,
    name: option.Name = None,
    region: option.Region = None,
    image_id: option.ImageId = None,
    subnet_ids: option.SubnetIds = None,
    security_group_id: option.SecurityGroupId = None,
    key_name: option.KeyName = None,
    instance_profile_arn: option.InstanceProfileArn = None,
    role_arn: option.RoleArn = None,
    without_key_pair: option.WithoutKeyPair = False,
    without_instance_profile: option.WithoutInstanceProfile = False,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Change an aws connection's settings, and check it again. What is not given stays."""
    network = given(region=region, subnet_ids=subnet_ids or None, security_group_id=security_group_id)
    image = given(name=name, image_id=image_id, key_name=key_name, instance_profile_arn=instance_profile_arn)
    taken_away = {"key_name": without_key_pair, "instance_profile_arn": without_instance_profile}
    changes = network | image | given(role_arn=role_arn)
    changes |= {name: None for name, gone in taken_away.items() if gone}
    if not changes:
        raise CliError("Nothing to change was given.", mend="See tensorant connections edit --help.")
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        present = session.client.connection(organization, connection_id)
        with session.keeper(present.managed_by) as keeper:
            connection = keeper.edit_connection(organization, connection_id, changes)
        finish(session, organization, connection, wait=wait, as_json=as_json)


@app.command()
def rotate(
    context: typer.Context,
    connection_id: option.ConnectionId,
    *,
    organization_id: OrganizationId = None,
    expires_at: option.ExpiresAt = None,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Replace a connection's keys, from the environment or asked for, and check with them.

    Use an identity of the same account: another one can't release the machines that this one has made.
    """
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        present = session.client.connection(organization, connection_id)
        _require_keys(present)
        keys = Keys(session.profile, session.surroundings.environ, expires_at).of(present.kind)
        with session.keeper(present.managed_by) as keeper:
            connection = keeper.replace_credentials(organization, connection_id, keys)
        finish(session, organization, connection, wait=wait, as_json=as_json)


@app.command(epilog=examples("tensorant connections remove conn-0123456789abcdef"))
def remove(
    context: typer.Context,
    connection_id: option.ConnectionId,
    *,
    organization_id: OrganizationId = None,
    yes: option.Yes = False,
) -> None:
    """Remove a connection and delete its credentials. Refused while a run or a kept disk needs them."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        present = session.client.connection(organization, connection_id)
        if not yes:
            _confirm_removal(present)
        with session.keeper(present.managed_by) as keeper:
            keeper.remove_connection(organization, connection_id)
        say(f"Removed {connection_id}; its credentials are deleted within the hour.")
        note("What it named in AWS stays: image, subnets, keys, the user or role. Delete those there.")


@app.command()
def check(
    context: typer.Context,
    connection_id: option.ConnectionId,
    *,
    organization_id: OrganizationId = None,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Check a connection again. Exit code 1 if it can't be used."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        present = session.client.connection(organization, connection_id)
        with session.keeper(present.managed_by) as keeper:
            connection = keeper.check_connection(organization, connection_id)
        finish(session, organization, connection, wait=wait, as_json=as_json)


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
        console().print(catalog_table(catalog))
        note(
            f"Prices of {utc(catalog.priced_at)}, without the disk. Not usable here: {len(catalog.excluded)} "
            "types; --json says why."
        )


def _require_keys(connection: Connection) -> None:
    """Raises `CliError` for a connection that has none."""
    if connection.settings.get("credentials", "keys") == "keys":
        return
    raise CliError(
        f"{connection.name} has no keys to replace: Tensorant makes its sessions itself.",
        mend="Change its role with tensorant connections edit --role-arn, or make a connection with keys.",
    )


def _confirm_removal(connection: Connection) -> None:
    not_removed = CliError("Not removed.", mend="Answer y, or give --yes where nobody can be asked.")
    try:
        answer = typer.confirm(f"Remove the connection {connection.name} ({connection.id})?", err=True)
    except typer.Abort as abort:
        raise not_removed from abort
    if not answer:
        raise not_removed
