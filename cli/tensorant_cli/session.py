"""One command at work: the API's client, the ids remembered, and the choice of what was not named."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import typer

from tensorant_cli import profiles
from tensorant_cli.client import ApiClient
from tensorant_cli.cognito import Refused, UserPoolClient
from tensorant_cli.errors import CliError
from tensorant_cli.output import note
from tensorant_cli.profiles import Profile, StoredProfile
from tensorant_cli.state import State
from tensorant_cli.surroundings import Surroundings

PLATFORM = "platform"
"""Who manages a connection that platform admins alone may change."""

LAST = "last"
"""Names the run used last, where a run is named."""


def surroundings_of(context: typer.Context) -> Surroundings:
    found = context.find_object(Surroundings)
    return found if found is not None else Surroundings()


@dataclass(frozen=True)
class Session:
    """A context manager; use `Session.of` in a command."""

    surroundings: Surroundings
    profile: Profile
    state: State
    client: ApiClient

    @classmethod
    def of(cls, context: typer.Context) -> Self:
        """Raises `CliError` where no deployment or token is known."""
        surroundings = surroundings_of(context)
        profile = profiles.load(surroundings)
        renew = (
            functools.partial(_renew, profile, surroundings)
            if profile.sign_in and profile.sign_in.refresh_token
            else None
        )
        client = ApiClient(
            profile.url,
            profile.token,
            transport=surroundings.transport,
            renew=renew,
            sleep=surroundings.sleep,
        )
        return cls(surroundings, profile, State(profile.state_path, profile.fingerprint), client)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()

    def admin_client(self) -> ApiClient:
        """Speaks as the platform admin, where the profile knows one apart from its owner. To be closed."""
        token = self.profile.admin_token or self.profile.token
        surroundings = self.surroundings
        return ApiClient(self.profile.url, token, transport=surroundings.transport, sleep=surroundings.sleep)

    @contextlib.contextmanager
    def keeper(self, managed_by: str | None) -> Iterator[ApiClient]:
        """Speaks as one who may change a connection: an owner, or for the platform's an admin."""
        if managed_by != PLATFORM:
            yield self.client
            return
        with self.admin_client() as admin:
            yield admin

    # -- what a command works on -------------------------------------------------------------------------

    def organization_id(self, given: str | None) -> str:
        """The one given, else the profile's, else the one used last, else the only one."""
        if given:
            self.state.remember_organization(given)
            return given
        if self.profile.organization_id:
            return self.profile.organization_id
        return _chosen(
            "organization",
            "--organization-id",
            last=self.state.organization_id,
            all_ids=lambda: [each.organization_id for each in self.client.me().memberships],
            make="tensorant organizations create NAME",
        )

    def project_id(self, organization_id: str, given: str | None) -> str:
        return self._used(organization_id, "project", given) or _chosen(
            "project",
            "--project-id",
            last=self.state.last(organization_id, "project"),
            all_ids=lambda: [each.id for each in self.client.projects(organization_id)],
            make="tensorant projects create NAME",
        )

    def connection_id(self, organization_id: str, given: str | None, *, kind: str, option: str) -> str:
        key = f"connection-{kind}"
        return self._used(organization_id, key, given) or _chosen(
            f"{kind.upper()} connection",
            option,
            last=self.state.last(organization_id, key),
            all_ids=lambda: [
                each.id for each in self.client.connections(organization_id) if each.kind == kind
            ],
            make=f"tensorant connections create {kind}",
        )

    def dataset_version_id(self, organization_id: str, project_id: str, given: str | None) -> str:
        key = f"dataset-version-{project_id}"
        return self._used(organization_id, key, given) or _chosen(
            "dataset version",
            "--dataset-version-id",
            last=self.state.last(organization_id, key),
            all_ids=lambda: [
                each.id
                for each in self.client.dataset_versions(organization_id, project_id)
                if each.status == "valid"
            ],
            make="tensorant datasets upload FILE",
        )

    def run_id(self, organization_id: str, given: str) -> str:
        """The run given; `last` is the one used last, else the newest."""
        run_id = given
        if given == LAST:
            last = self.state.last(organization_id, "run")
            run_id = last or self._newest_run(organization_id)
            note(f"Run: {run_id} (the last one).")
        self.state.remember(organization_id, "run", run_id)
        return run_id

    def _used(self, organization_id: str, key: str, given: str | None) -> str | None:
        if given:
            self.state.remember(organization_id, key, given)
        return given

    def _newest_run(self, organization_id: str) -> str:
        runs = self.client.runs(organization_id)
        if not runs:
            raise CliError("There is no run yet.", mend="Draft one: tensorant runs draft.")
        return max(runs, key=lambda run: run.created_at).id


def _chosen(
    what: str, option: str, *, last: str | None, all_ids: Callable[[], Sequence[str]], make: str
) -> str:
    """The one used last, else the only one; it is said which. Raises `CliError` rather than guess."""
    name = what[:1].upper() + what[1:]
    if last:
        note(f"{name}: {last} (used last).")
        return last
    ids = all_ids()
    if len(ids) == 1:
        note(f"{name}: {ids[0]} (the only one).")
        return ids[0]
    if not ids:
        raise CliError(f"There is no {what} yet.", mend=f"Make one: {make}.")
    raise CliError(f"There are several: {', '.join(ids)}.", mend=f"Name the {what} with {option}.")


def _renew(profile: Profile, surroundings: Surroundings) -> str:
    """The next token of a profile that was signed in; it is stored, so that the next command has it."""
    expired = CliError("The token has expired.", mend="Sign in again: tensorant login.")
    if profile.sign_in is None:
        raise expired
    pool = UserPoolClient(profile.sign_in.cognito_endpoint, profile.sign_in.client_id, surroundings.transport)
    try:
        token = pool.renew(profile.sign_in.refresh_token)
    except Refused as error:
        raise expired from error
    stored = StoredProfile(
        url=profile.url,
        token=token,
        organization=_organization(profile, surroundings),
        sign_in=profile.sign_in,
    )
    profiles.save_profile(profile.name, stored, surroundings)
    return token


def _organization(profile: Profile, surroundings: Surroundings) -> str | None:
    """The profile's own, not the environment's."""
    return profiles.read_config(surroundings).profiles[profile.name].organization
