"""`tensorant login`: name and password for a token, kept in the profile."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from tensorant_cli import profiles
from tensorant_cli.cognito import UserPoolClient
from tensorant_cli.credentials import ask_hidden
from tensorant_cli.errors import CliError
from tensorant_cli.http import require_safe
from tensorant_cli.output import say
from tensorant_cli.profiles import DEFAULT, SignIn, StoredProfile
from tensorant_cli.session import surroundings_of
from tensorant_cli.surroundings import Surroundings


def login(
    context: typer.Context,
    *,
    username: Annotated[str, typer.Option(prompt="E-mail address", help="Your account's e-mail address.")],
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="ApiUrl of the stack's outputs.", show_default=False)
    ] = None,
    client_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="UserPoolClientId of the stack's outputs.", show_default=False),
    ] = None,
    region: Annotated[
        str | None, typer.Option(metavar="REGION", help="The deployment's AWS region.", show_default=False)
    ] = None,
    cognito_endpoint: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Instead of the region's user pool endpoint.", show_default=False),
    ] = None,
    organization_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Work in this organization by default.", show_default=False),
    ] = None,
) -> None:
    """Sign in to a deployment. The password is asked for, hidden; only tokens are stored.

    The first time, give the API's address, the client id and the region; after that they are known.
    """
    surroundings = surroundings_of(context)
    surroundings = replace(surroundings, url=url or surroundings.url)
    name = surroundings.profile or surroundings.environ.get("TENSORANT_PROFILE") or DEFAULT
    known = profiles.read_config(surroundings).profiles.get(name)
    url = _url(surroundings, known)
    pool = _pool(known, client_id, cognito_endpoint or _endpoint(region), surroundings)
    tokens = pool.sign_in(
        username, ask_hidden("Password"), new_password=lambda: ask_hidden("Choose a new password")
    )
    stored = StoredProfile(
        url=url,
        token=tokens.access_token,
        organization=organization_id or (known.organization if known else None),
        sign_in=SignIn(
            cognito_endpoint=pool.endpoint, client_id=pool.client_id, refresh_token=tokens.refresh_token
        ),
    )
    path = profiles.save_profile(name, stored, surroundings)
    say(f"Signed in to {url}; the token is in {path}, which only you can read.")


def _url(surroundings: Surroundings, known: StoredProfile | None) -> str:
    url = surroundings.url or surroundings.environ.get("TENSORANT_URL") or (known.url if known else None)
    if not url:
        raise CliError(
            "No deployment is named.",
            mend="Give its address, ApiUrl of the stack's outputs: tensorant login --url URL.",
        )
    return require_safe(url)


def _pool(
    known: StoredProfile | None, client_id: str | None, endpoint: str | None, surroundings: Surroundings
) -> UserPoolClient:
    """Options first, then what the profile knows."""
    before = known.sign_in if known else None
    client_id = client_id or (before.client_id if before else None)
    endpoint = endpoint or (before.cognito_endpoint if before else None)
    if not client_id or not endpoint:
        raise CliError(
            "The user pool is not known yet.",
            mend="Give --client-id and --region: UserPoolClientId of the stack's outputs, and its region.",
        )
    return UserPoolClient(require_safe(endpoint), client_id, surroundings.transport)


def _endpoint(region: str | None) -> str | None:
    return f"https://cognito-idp.{region}.amazonaws.com" if region else None
