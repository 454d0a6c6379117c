"""`tensorant organizations …`, and who is signed in."""

from __future__ import annotations

from typing import Annotated

import typer

from tensorant_cli.models import Me
from tensorant_cli.options import AsJson, examples
from tensorant_cli.output import console, facts, note, say, say_json
from tensorant_cli.session import Session

app = typer.Typer(no_args_is_help=True, help="Organizations: who owns connections, projects and runs.")


@app.command(epilog=examples("tensorant organizations create Example"))
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What people call it.")],
    *,
    owner: Annotated[
        str | None,
        typer.Option(
            metavar="SUBJECT", help="The owner's token subject; by default yours.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create an organization with its first owner. Only platform admins may."""
    with Session.of(context) as session, session.admin_client() as admin:
        if owner is None:
            owner = session.client.me().subject
            note(f"Owner: {owner} (you).")
        organization = admin.create_organization(name=name, owner=owner)
        session.state.remember_organization(organization.id)
        if as_json:
            say_json(organization)
            return
        say(f"Created the organization {organization.name}: {organization.id}")


@app.command()
def use(
    context: typer.Context, organization_id: Annotated[str, typer.Argument(metavar="ID", help="Its id.")]
) -> None:
    """Work in this organization from now on."""
    with Session.of(context) as session:
        session.state.remember_organization(organization_id)
        say(f"Commands work in {organization_id} now.")


def me(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Show who you are, and the organizations you belong to."""
    with Session.of(context) as session:
        person = session.client.me()
        if as_json:
            say_json(person)
            return
        console().print(facts(_of(person, session)))


def _of(person: Me, session: Session) -> dict[str, str]:
    memberships = [f"{each.organization_id} ({each.role})" for each in person.memberships]
    return {
        "Subject": person.subject,
        "Platform admin": "yes" if person.platform_admin else "no",
        "Organizations": ", ".join(memberships) or "none yet",
        "Profile": session.profile.name,
        "API": session.profile.url,
    }
