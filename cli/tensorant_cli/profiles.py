"""Where the address, the token and the organization come from.

Options come before the environment (TENSORANT_URL, TENSORANT_TOKEN, TENSORANT_ORGANIZATION), the environment
before a profile of `~/.config/tensorant/config.json`, and a profile before local mode, whose file
`.tensorant/local.json` is looked for in this directory and those above it. A token has no option: the
arguments of a command can be seen by others.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tensorant.contract import BaseModelRef
from tensorant_cli.errors import CliError
from tensorant_cli.http import on_loopback, require_safe
from tensorant_cli.private_files import write_private
from tensorant_cli.surroundings import Surroundings

LOCAL = "local"
DEFAULT = "default"
LOCAL_FILE = Path(".tensorant") / "local.json"

HOW_TO_CONNECT = (
    "Sign in with `tensorant login`, or start local mode with `tensorant local up` and run this again in the "
    "same directory."
)


class Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class SignIn(Stored):
    """Where a token came from, and how to get the next one."""

    cognito_endpoint: str
    client_id: str
    refresh_token: str = Field(repr=False)


class StoredProfile(Stored):
    """One profile of the configuration file."""

    url: str
    token: str = Field(repr=False)
    organization: str | None = None
    sign_in: SignIn | None = None


class ConfigFile(Stored):
    profiles: dict[str, StoredProfile] = {}


class LocalTokens(Stored):
    admin: str = Field(repr=False)
    owner: str = Field(repr=False)


class LocalFile(Stored):
    """What local mode leaves for the command line.

    `connections` holds request bodies by kind, credentials of the embedded cloud included; options that
    `connections create` is not given are taken from them. `base_model` is the one that its machines have.
    """

    url: str
    tokens: LocalTokens
    organization: str | None = None
    connections: dict[str, dict[str, Any]] = Field({}, repr=False)
    base_model: BaseModelRef | None = None


@dataclass(frozen=True)
class Profile:
    """Everything a command needs to know of where it works."""

    name: str
    url: str
    token: str = field(repr=False)
    state_path: Path
    fingerprint: str
    """Names the deployment: what was remembered of another one is not used."""
    organization_id: str | None = None
    admin_token: str | None = field(default=None, repr=False)
    """A platform admin's, where that is another person's than `token`."""
    sign_in: SignIn | None = None
    connections: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    base_model: BaseModelRef | None = None


def load(surroundings: Surroundings) -> Profile:
    """The profile to work with, options and environment applied. Raises `CliError` with the way to one."""
    environ = surroundings.environ
    stored = _stored(surroundings)
    url = surroundings.url or environ.get("TENSORANT_URL") or (stored.url if stored else None)
    if not url:
        raise CliError("No deployment is configured.", mend=HOW_TO_CONNECT)
    profile = _with_url(stored, require_safe(url), surroundings)
    if token := environ.get("TENSORANT_TOKEN"):
        profile = replace(profile, token=token, admin_token=None, sign_in=None)
    if not profile.token:
        raise CliError(
            f"There is no token for {profile.url}.",
            mend=f"Set TENSORANT_TOKEN. {HOW_TO_CONNECT}",
        )
    organization_id = environ.get("TENSORANT_ORGANIZATION") or profile.organization_id
    return replace(profile, organization_id=organization_id)


def _with_url(stored: Profile | None, url: str, surroundings: Surroundings) -> Profile:
    """A stored token is for the stored address alone: it is not sent to another one."""
    if stored is not None and stored.url == url:
        return stored
    path = surroundings.config_directory / "state-environment.json"
    return Profile(name="environment", url=url, token="", state_path=path, fingerprint=url)


def _stored(surroundings: Surroundings) -> Profile | None:
    """The profile that was named, else the default one, else local mode's unless the environment names an address."""
    name = surroundings.profile or surroundings.environ.get("TENSORANT_PROFILE")
    if name == LOCAL:
        found = local_profile(surroundings.directory)
        if found is None:
            raise CliError("Local mode is not running here.", mend="Start it: tensorant local up.")
        return found
    profiles = read_config(surroundings).profiles
    if name and name not in profiles:
        raise CliError(
            f"There is no profile {name}.",
            mend=f"Make it: tensorant --profile {name} login. Known are {', '.join((*profiles, LOCAL))}.",
        )
    if (name or DEFAULT) in profiles:
        return _configured(name or DEFAULT, profiles[name or DEFAULT], surroundings)
    if surroundings.url or surroundings.environ.get("TENSORANT_URL"):
        return None
    return local_profile(surroundings.directory)


def _configured(name: str, stored: StoredProfile, surroundings: Surroundings) -> Profile:
    url = require_safe(stored.url)
    return Profile(
        name=name,
        url=url,
        token=stored.token,
        state_path=surroundings.config_directory / f"state-{name}.json",
        fingerprint=url,
        organization_id=stored.organization,
        sign_in=stored.sign_in,
    )


def local_profile(directory: Path) -> Profile | None:
    """Local mode's, from this directory or one above. Only one's own file, and only on loopback."""
    for parent in (directory, *directory.parents):
        path = parent / LOCAL_FILE
        if path.is_file():
            return _local(path)
    return None


def _local(path: Path) -> Profile:
    content = path.read_bytes()
    try:
        body = LocalFile.model_validate_json(content)
    except ValidationError as error:
        raise CliError(f"{path} is damaged.", mend="Start local mode again: tensorant local up.") from error
    if path.stat().st_uid != os.getuid() or not on_loopback(body.url):
        raise CliError(f"{path} was not written by your local mode.", mend="Remove it, or work elsewhere.")
    return Profile(
        name=LOCAL,
        url=require_safe(body.url),
        token=body.tokens.owner,
        admin_token=body.tokens.admin,
        state_path=path.with_name("cli-state.json"),
        fingerprint=hashlib.sha256(content).hexdigest()[:16],
        organization_id=body.organization,
        connections=body.connections,
        base_model=body.base_model,
    )


def config_path(surroundings: Surroundings) -> Path:
    return surroundings.config_directory / "config.json"


def read_config(surroundings: Surroundings) -> ConfigFile:
    path = config_path(surroundings)
    if not path.exists():
        return ConfigFile()
    try:
        return ConfigFile.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise CliError(f"{path} is damaged.", mend="Mend or remove it, then sign in again.") from error


def save_profile(name: str, profile: StoredProfile, surroundings: Surroundings) -> Path:
    """Add or replace one profile; the file can be read by its owner alone."""
    if name == LOCAL:
        raise CliError("The profile local is local mode's.", mend="Choose another name: --profile NAME.")
    config = read_config(surroundings)
    changed = config.model_copy(update={"profiles": {**config.profiles, name: profile}})
    path = config_path(surroundings)
    write_private(path, changed.model_dump(mode="json"))
    return path
