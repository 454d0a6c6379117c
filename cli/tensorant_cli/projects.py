"""`tensorant projects …`: each bound to one storage connection."""

from __future__ import annotations

from typing import Annotated

import typer

from tensorant_cli.formats import utc
from tensorant_cli.options import AsJson, OrganizationId, examples
from tensorant_cli.output import console, facts, say, say_json, table
from tensorant_cli.session import Session

app = typer.Typer(no_args_is_help=True, help="Projects: their datasets and adapters live in one storage.")


@app.command(epilog=examples("tensorant projects create Assistant"))
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What people call it.")],
    *,
    organization_id: OrganizationId = None,
    storage_connection_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="By default the s3 connection used last, or the only one.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a project. Its storage can't be changed later."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        storage = session.connection_id(
            organization, storage_connection_id, kind="s3", option="--storage-connection-id"
        )
        project = session.client.create_project(organization, name=name, storage_connection_id=storage)
        session.state.remember(organization, "project", project.id)
        if as_json:
            say_json(project)
            return
        say(f"Created the project {project.name}: {project.id}")


@app.command("list")
def list_(context: typer.Context, *, organization_id: OrganizationId = None, as_json: AsJson = False) -> None:
    """List the organization's projects."""
    with Session.of(context) as session:
        found = session.client.projects(session.organization_id(organization_id))
        if as_json:
            say_json(found)
            return
        rows = [(each.id, each.name, each.storage_connection_id, utc(each.created_at)) for each in found]
        console().print(table(None, ("Id", "Name", "Storage", "Created"), rows))


@app.command()
def show(
    context: typer.Context,
    project_id: Annotated[str, typer.Argument(metavar="PROJECT", help="The project's id.")],
    *,
    organization_id: OrganizationId = None,
    as_json: AsJson = False,
) -> None:
    """Show a project."""
    with Session.of(context) as session:
        project = session.client.project(session.organization_id(organization_id), project_id)
        if as_json:
            say_json(project)
            return
        console().print(
            facts(
                {
                    "Project": project.id,
                    "Name": project.name,
                    "Storage": project.storage_connection_id,
                    "Created": utc(project.created_at),
                }
            )
        )
