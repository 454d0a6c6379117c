"""User data as EC2 and cloud-init take it, and the two scripts that decide alone."""

from __future__ import annotations

import gzip
import subprocess
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from tensorant.boot import agent
from tensorant.boot.render import USER_DATA_LIMIT_BYTES, BootParameters, UserDataTooLargeError, user_data

if TYPE_CHECKING:
    from collections.abc import Sequence

BOOT = BootParameters(
    agent_url="https://a1b2c3d4e5.execute-api.ap-southeast-2.amazonaws.com/agent/v1",
    token="6f" * 32,
    run_id="run-01JZX3V4Q5R6S7T8V9WAXBYCZD",
    attempt=12,
    deadline_seconds=259_200,
    recovery_window_seconds=14_400,
    release_wait_seconds=3_600,
    min_free_disk_gib=500,
)
HEADROOM_BYTES = 1_000
SCRIPTS = Path(agent.__file__).parent

# The keys we use, as cloud-init's schema has them (schema-cloud-config-v1: bootcmd, runcmd, write_files).
COMMANDS = {
    "type": "array",
    "minItems": 1,
    "items": {"oneOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]},
}
CLOUD_CONFIG = {
    "type": "object",
    "additionalProperties": False,
    "required": ["bootcmd", "write_files", "runcmd"],
    "properties": {
        "bootcmd": COMMANDS,
        "runcmd": COMMANDS,
        "write_files": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["path"],
                "properties": {
                    "path": {"type": "string", "pattern": "^/"},
                    "content": {"type": "string"},
                    "permissions": {"type": "string", "pattern": "^0[0-7]{3}$"},
                    "encoding": {"enum": ["gz", "gz+b64", "b64", "text/plain"]},
                },
            },
        },
    },
}


def config(boot: BootParameters = BOOT) -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load(user_data(boot))
    return parsed


def test_user_data_fits_with_room_for_longer_values() -> None:
    assert len(user_data(BOOT).encode()) < USER_DATA_LIMIT_BYTES - HEADROOM_BYTES


def test_user_data_that_is_too_large_is_refused() -> None:
    with pytest.raises(UserDataTooLargeError, match="EC2 takes 16384"):
        user_data(replace(BOOT, agent_url="https://" + "a" * 16_000))


def test_user_data_is_valid_cloud_config() -> None:
    assert user_data(BOOT).startswith("#cloud-config\n")
    jsonschema.validate(config(), CLOUD_CONFIG)


def test_no_placeholder_is_left() -> None:
    assert "@" not in user_data(BOOT).replace('"$@"', "").replace("$@", "")


def test_the_token_is_in_one_private_file_and_nowhere_else() -> None:
    assert user_data(BOOT).count(BOOT.token) == 1
    [file] = [file for file in config()["write_files"] if file["content"] == BOOT.token]
    assert (file["path"], file["permissions"]) == ("/etc/tensorant/token", "0600")


def test_two_machines_of_one_attempt_differ_in_the_token_alone() -> None:
    other = user_data(replace(BOOT, token="{{token}}"))

    assert other.replace("{{token}}", BOOT.token) == user_data(BOOT)


def test_the_files_arrive_as_they_are() -> None:
    contents = {file["path"]: file["content"] for file in config()["write_files"]}

    for path in (
        "/usr/local/lib/tensorant/run.sh",
        "/usr/local/lib/tensorant/preflight.sh",
        "/usr/local/lib/tensorant/agent.py",
        "/etc/systemd/system/tensorant-run.service",
    ):
        packed = gzip.decompress(b64decode(contents[path]))
        assert packed.decode() == (SCRIPTS / Path(path).name).read_text()


def test_the_deadline_is_first_at_every_boot_and_needs_no_file() -> None:
    [command] = config()["bootcmd"]

    assert command[:2] == ["bash", "-c"]
    assert command[2] == (SCRIPTS / "deadline.sh").read_text()
    assert command[4:] == ["259200", "14400", f"{BOOT.run_id}-12"]
    assert "/usr/local/lib" not in command[2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"token": 'a"b'},
        {"token": ""},
        {"agent_url": "https://a/$(reboot)"},
        {"run_id": "../other"},
        {"run_id": "a b"},
        {"deadline_seconds": 0},
        {"recovery_window_seconds": 0},
    ],
)
def test_values_that_scripts_could_misread_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        replace(BOOT, **wrong)


class Host:
    """A root folder and a PATH on which systemd's tools write down what they were asked."""

    def __init__(self, folder: Path, *, timer_can_be_armed: bool = True) -> None:
        self.root = folder / "root"
        self.asked = folder / "asked"
        self.asked.touch()
        self.tools = folder / "bin"
        self.tools.mkdir()
        for name in ("mkdir", "chmod", "sync"):
            (self.tools / name).symlink_to(f"/bin/{name}")
        self.tool("systemd-run", status=0 if timer_can_be_armed else 1)
        self.tool("systemctl", status=3)  # is-active: inactive

    def tool(self, name: str, *, status: int) -> None:
        path = self.tools / name
        path.write_text(f'#!/bin/sh\necho {name} "$@" >>{self.asked}\nexit {status}\n')
        path.chmod(0o755)

    def boot(self, arguments: Sequence[str] = ("3600", "7200", "run-1-1")) -> str:
        """What the deadline script asked of systemd at this boot."""
        self.asked.write_text("")
        subprocess.run(
            ["/bin/bash", str(SCRIPTS / "deadline.sh"), *arguments],
            env={"ROOT": str(self.root), "PATH": str(self.tools)},
            check=False,
            capture_output=True,
        )
        return self.asked.read_text()


def test_docker_is_given_a_time_to_answer(tmp_path: Path) -> None:
    """A daemon that hangs keeps its client waiting, and the host's heartbeats would go on."""
    host = Host(tmp_path)
    host.tool("docker", status=0)
    host.tool("timeout", status=124)
    script = f"""
        fail() {{ echo "$1"; exit 1; }}
        gist() {{ :; }}
        sleep() {{ :; }}
        RETRY_SECONDS=0
        . {SCRIPTS}/preflight.sh
        check_docker
    """

    said = subprocess.run(
        ["/bin/bash", "-c", script],
        env={"PATH": str(host.tools)},
        check=False,
        capture_output=True,
        text=True,
    )

    assert said.stdout == "docker_unreachable\n"
    assert set(host.asked.read_text().splitlines()) == {
        "timeout --foreground --kill-after=10 120 docker version --format {{.Server.Version}}"
    }


def test_the_first_boot_arms_the_runs_limit(tmp_path: Path) -> None:
    asked = Host(tmp_path).boot()

    assert "--on-boot=3600s" in asked
    assert "--no-block" in asked
    assert asked.count("DefaultDependencies=no") == 2  # the timer's and the service's
    assert asked.rstrip().endswith("systemctl poweroff")


def test_every_later_boot_arms_the_recovery_window(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.boot()

    assert "--on-boot=7200s" in host.boot()
    assert "--on-boot=7200s" in host.boot()


def test_a_marker_of_another_attempt_in_the_image_changes_nothing(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.boot(("3600", "7200", "run-0-1"))

    assert "--on-boot=3600s" in host.boot()


def test_a_machine_without_a_deadline_turns_itself_off_at_once(tmp_path: Path) -> None:
    host = Host(tmp_path, timer_can_be_armed=False)

    assert host.boot().splitlines()[-1] == "systemctl --no-block poweroff"
    assert not (host.root / "var/lib/tensorant/attempts/run-1-1/booted").exists()


def test_a_deadline_that_is_armed_already_is_left_alone(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.tool("systemctl", status=0)

    assert host.boot() == "systemctl is-active --quiet tensorant-deadline.timer\n"
