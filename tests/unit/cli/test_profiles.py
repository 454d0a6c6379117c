"""Where address, token and organization come from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tensorant_cli.errors import CliError
from tensorant_cli.profiles import StoredProfile, load, save_profile
from tensorant_cli.surroundings import Surroundings
from tests.support.command_line import ORG, Terminal, listed, me, organization, run

if TYPE_CHECKING:
    from pathlib import Path

LOCAL_URL = "http://127.0.0.1:4001"


def surroundings(home: Path, **changes: Any) -> Surroundings:
    fields: dict[str, Any] = {"environ": {}, "home": home, "directory": home, **changes}
    return Surroundings(**fields)


def signed_in(home: Path, name: str = "default", **changes: Any) -> Path:
    fields = {"url": "https://api.example.com", "token": "stored-token", **changes}
    return save_profile(name, StoredProfile(**fields), surroundings(home))


def local_mode(directory: Path, **changes: Any) -> Path:
    path = directory / ".tensorant" / "local.json"
    path.parent.mkdir(exist_ok=True)
    tokens = {"admin": "admin-token", "owner": "owner-token"}
    path.write_text(json.dumps({"url": LOCAL_URL, "tokens": tokens, "organization": None, **changes}))
    return path


def test_a_stored_profile_is_used(tmp_path: Path) -> None:
    signed_in(tmp_path, organization="org-7")

    profile = load(surroundings(tmp_path))

    assert (profile.url, profile.token) == ("https://api.example.com", "stored-token")
    assert profile.organization_id == "org-7"


def test_only_its_owner_can_read_a_stored_token(tmp_path: Path) -> None:
    path = signed_in(tmp_path)

    assert path == tmp_path / ".config" / "tensorant" / "config.json"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_profile_does_not_show_its_token(tmp_path: Path) -> None:
    signed_in(tmp_path)

    assert "stored-token" not in repr(load(surroundings(tmp_path)))


def test_the_environment_comes_before_the_profile(tmp_path: Path) -> None:
    signed_in(tmp_path, organization="org-7")
    environ = {"TENSORANT_TOKEN": "other-token", "TENSORANT_ORGANIZATION": "org-8"}

    profile = load(surroundings(tmp_path, environ=environ))

    assert (profile.token, profile.organization_id) == ("other-token", "org-8")


def test_an_option_comes_before_the_environment(tmp_path: Path) -> None:
    environ = {"TENSORANT_URL": "https://other.example.com", "TENSORANT_TOKEN": "token"}

    profile = load(surroundings(tmp_path, environ=environ, url="https://api.example.com/"))

    assert profile.url == "https://api.example.com"


def test_a_stored_token_is_not_sent_to_another_address(tmp_path: Path) -> None:
    signed_in(tmp_path)

    with pytest.raises(CliError, match=r"no token for https://other\.example\.com"):
        load(surroundings(tmp_path, url="https://other.example.com"))


def test_a_token_does_not_travel_in_the_clear(tmp_path: Path) -> None:
    environ = {"TENSORANT_URL": "http://api.example.com", "TENSORANT_TOKEN": "token"}

    with pytest.raises(CliError, match="not an https:// address"):
        load(surroundings(tmp_path, environ=environ))


def test_local_mode_is_found_from_a_directory_below(tmp_path: Path) -> None:
    local_mode(tmp_path)
    below = tmp_path / "data" / "chats"
    below.mkdir(parents=True)

    profile = load(surroundings(tmp_path / "home", directory=below))

    assert (profile.name, profile.url, profile.token) == ("local", LOCAL_URL, "owner-token")
    assert profile.admin_token == "admin-token"


def test_local_mode_waits_for_its_turn_behind_a_profile(tmp_path: Path) -> None:
    signed_in(tmp_path)
    local_mode(tmp_path)

    assert load(surroundings(tmp_path)).name == "default"
    assert load(surroundings(tmp_path, profile="local")).name == "local"
    assert load(surroundings(tmp_path, environ={"TENSORANT_PROFILE": "local"})).name == "local"


def test_local_mode_elsewhere_than_on_loopback_is_refused(tmp_path: Path) -> None:
    local_mode(tmp_path, url="https://api.example.com")

    with pytest.raises(CliError, match="not written by your local mode"):
        load(surroundings(tmp_path))


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (None, "No deployment is configured"),
        ("local", "Local mode is not running here"),
        ("staging", "There is no profile staging"),
    ],
)
def test_without_a_profile_the_way_to_one_is_told(tmp_path: Path, profile: str | None, message: str) -> None:
    with pytest.raises(CliError, match=message) as told:
        load(surroundings(tmp_path, profile=profile))

    assert "tensorant" in told.value.mend


def test_a_damaged_file_is_told_by_its_path(tmp_path: Path) -> None:
    signed_in(tmp_path).write_text("{")

    with pytest.raises(CliError, match=r"config\.json is damaged"):
        load(surroundings(tmp_path))


def test_in_local_mode_the_admin_creates_the_owner_s_organization(terminal: Terminal) -> None:
    local_mode(terminal.directory)
    terminal.environ.clear()
    terminal.api.answer("GET /v1/me", me())
    terminal.api.answer("POST /v1/organizations", organization(), status=201)

    result = terminal.run("organizations", "create", "Example")

    assert result.exit_code == 0
    assert result.stdout == "Created the organization Example: org-1\n"
    assert terminal.api.sent("POST /v1/organizations") == {"name": "Example", "owner": "subject-1"}
    asked, created = terminal.api.requests
    assert asked.headers["Authorization"] == "Bearer owner-token"
    assert created.headers["Authorization"] == "Bearer admin-token"


def test_a_new_organization_is_worked_in_from_then_on(terminal: Terminal) -> None:
    local_mode(terminal.directory)
    terminal.environ.clear()
    terminal.api.answer("GET /v1/me", me())
    terminal.api.answer("POST /v1/organizations", organization(), status=201)
    terminal.api.answer(f"GET {ORG}/runs", listed(run()))
    terminal.run("organizations", "create", "Example")

    result = terminal.run("runs", "list")

    assert result.exit_code == 0
    assert "Organization: org-1 (used last)." in result.stderr


def test_another_local_mode_has_no_ids_of_the_one_before(terminal: Terminal) -> None:
    local_mode(terminal.directory)
    terminal.environ.clear()
    terminal.run("organizations", "use", "org-1")
    local_mode(terminal.directory, tokens={"admin": "later-admin", "owner": "later-owner"})
    terminal.api.answer("GET /v1/me", me())

    result = terminal.run("runs", "list")

    assert result.exit_code == 1
    assert "There is no organization yet." in result.stderr
    assert "Mend: Make one: tensorant organizations create NAME." in result.stderr


def test_the_only_organization_is_taken_and_several_are_not_guessed_among(terminal: Terminal) -> None:
    del terminal.environ["TENSORANT_ORGANIZATION"]
    terminal.api.answer("GET /v1/me", me("org-1"), me("org-1", "org-2"))
    terminal.api.answer(f"GET {ORG}/runs", listed())

    only = terminal.run("runs", "list")
    several = terminal.run("runs", "list")

    assert "Organization: org-1 (the only one)." in only.stderr
    assert several.exit_code == 1
    assert "There are several: org-1, org-2." in several.stderr
    assert "Name the organization with --organization-id." in several.stderr


def test_a_command_without_a_deployment_ends_with_the_mend(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, environ={})

    result = terminal.run("me")

    assert result.exit_code == 1
    assert "No deployment is configured." in result.stderr
    assert "tensorant local up" in result.stderr
