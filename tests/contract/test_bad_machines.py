"""What is wrong with a machine, found by the real boot scripts and told in words of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tensorant.contract import EventType
from tests.support.machine_room import Room, a_room, trainer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REGISTRY = "registry.example.com"
STORAGE = "bucket.s3.eu-central-1.amazonaws.com"

BEFORE_THE_PULL: list[tuple[dict[str, Any], str, str]] = [
    ({"architecture": "aarch64"}, "architecture", "This machine is aarch64; the trainer needs x86_64."),
    ({"missing_tools": ["docker"]}, "docker_missing", "Docker is not installed."),
    ({"docker_answers": False}, "docker_unreachable", "Docker does not answer: Cannot connect to the Docker"),
    ({"nvidia_runtime": False}, "nvidia_runtime", 'Docker has no NVIDIA runtime: {"runc":{}}'),
    ({"missing_tools": ["nvidia-smi"]}, "driver_missing", "No NVIDIA driver is installed."),
    ({"driver_version": None}, "driver_missing", "couldn't communicate with the NVIDIA driver"),
    ({"driver_version": "575.57.08"}, "driver_too_old", "driver is 575.57.08; 580 or newer is needed."),
    ({"gpu_name": None}, "gpu_missing", "nvidia-smi sees no GPU: No devices were found"),
    ({"gpus": 4}, "gpu_count", "This machine has 4 GPUs; a run uses exactly one."),
    ({"free_disk_gib": 59}, "disk_too_small", "59 GiB of disk are free; 60 GiB are needed."),
]
ON_THE_WAY_OUT: list[tuple[dict[str, str], str, str]] = [
    (
        {REGISTRY: "dns"},
        "route_registry",
        "The image registry can't be reached: its name can't be resolved (DNS: Name or service not known).",
    ),
    (
        {REGISTRY: "refused"},
        "route_registry",
        "The image registry can't be reached: the connection was refused.",
    ),
    ({REGISTRY: "tls"}, "route_registry", "TLS failed, something on the way may intercept it ("),
    (
        {STORAGE: "timeout"},
        "route_storage",
        "The run's storage can't be reached: no answer in time: a firewall or a missing route may drop it.",
    ),
    (
        {STORAGE: "no_route"},
        "route_storage",
        "The run's storage can't be reached: [Errno 101] Network is unreachable.",
    ),
]
AFTER_THE_PULL: list[tuple[dict[str, Any], str, str]] = [
    (
        {"gpu_in_container": False},
        "gpu_in_container",
        "A container sees no GPU: docker: Error response from daemon",
    ),
    ({"container_starts": False}, "container_start", 'exec: "python": executable file not found in $PATH'),
]


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    with a_room(tmp_path) as room:
        room.agent.storage = f"https://{STORAGE}"
        yield room


def told(room: Room, code: str, message: str) -> None:
    """The last event says so, and so does the console."""
    last = room.of_host()[-1]
    assert (last.type, last.code) == (EventType.PREFLIGHT_FAILED, code)
    assert message in last.message
    assert f"{code}: {last.message}" in room.console
    assert EventType.STARTED not in room.agent.types()


@pytest.mark.parametrize(("fault", "code", "message"), BEFORE_THE_PULL)
def test_an_unfit_machine_says_why_and_turns_itself_off(
    room: Room, fault: dict[str, Any], code: str, message: str
) -> None:
    room.boot(replace(trainer("completes"), **fault))

    assert room.turned_itself_off()
    told(room, code, message)
    assert "Pulling" not in room.console


@pytest.mark.parametrize(("unreachable", "code", "message"), ON_THE_WAY_OUT)
def test_a_missing_route_is_named_by_where_it_leads_and_how_it_fails(
    room: Room, unreachable: dict[str, str], code: str, message: str
) -> None:
    room.boot(replace(trainer("completes"), unreachable=unreachable), contact_seconds=0)

    assert room.turned_itself_off()
    told(room, code, message)
    assert "Pulling" not in room.console


@pytest.mark.parametrize(("fault", "code", "message"), AFTER_THE_PULL)
def test_what_only_a_container_shows_is_told_before_anything_is_trained(
    room: Room, fault: dict[str, Any], code: str, message: str
) -> None:
    room.boot(replace(trainer("completes"), **fault))

    assert room.turned_itself_off()
    told(room, code, message)
    assert EventType.IMAGE_PULLED in room.agent.types()
    assert "--help" not in room.of_host()[-1].message


def test_an_image_that_nobody_gives_out_is_asked_for_five_times(room: Room) -> None:
    room.boot(replace(trainer("completes"), pull_succeeds=False), retry_seconds=0.05)

    assert room.turned_itself_off()
    told(room, "image_pull", "manifest unknown")
    assert room.console.count("tensorant: Pulling") == 5


def test_a_disk_that_the_image_fills_is_not_tried_again(room: Room) -> None:
    room.boot(replace(trainer("completes"), disk_holds_image=False))

    assert room.turned_itself_off()
    told(room, "disk_too_small", "no space left on device")
    assert room.console.count("tensorant: Pulling") == 1


def test_an_image_that_dies_before_it_has_done_anything_leaves_nothing_to_keep(room: Room) -> None:
    room.boot(trainer("broken"))

    assert room.turned_itself_off()
    told(room, "image_broken", "ended with status 1 before it had done anything: ModuleNotFoundError")
    assert any("No module named 'torch'" in line for line in room.agent.log)


def test_what_a_trainer_has_done_is_kept_when_docker_goes_away_under_it(room: Room) -> None:
    """Then `docker run` ends with a status that else means that nothing was started (125)."""
    room.boot(trainer("loses_docker"))

    assert room.turned_itself_off()
    last = room.of_host()[-1]
    assert (last.type, last.exit_code) == (EventType.TRAINER_EXITED, 125)


def test_rights_are_asked_for_again(room: Room) -> None:
    room.agent.faults["/agent/v1/grants"].extend([503])

    room.boot(trainer("completes"))

    assert room.turned_itself_off()
    assert "grants: it answered 503; again in 0.1 s" in room.console
    assert EventType.COMPLETED in room.agent.types()


def test_rights_that_cannot_be_had_are_left_to_the_trainer(room: Room) -> None:
    room.agent.faults["/agent/v1/grants"].extend([503] * 20)

    room.boot(trainer("completes"), retry_seconds=11)

    assert room.turned_itself_off()
    assert EventType.COMPLETED in room.agent.types()


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("dns", "its name can't be resolved (DNS: Name or service not known)."),
        ("refused", "the connection was refused."),
        ("timeout", "no answer in time: a firewall or a missing route may drop it."),
    ],
)
def test_without_a_route_to_the_control_plane_the_console_is_told(room: Room, way: str, reason: str) -> None:
    address = room.agent.origin.removeprefix("http://")

    room.boot(replace(trainer("completes"), unreachable={address: way}), contact_seconds=0)

    assert room.turned_itself_off()
    said = f"route_control_plane: The control plane can't be reached at {room.agent.url}: {reason}"
    assert said in room.console
    assert "Check the subnet's route out" in room.console
    assert room.agent.calls == []


def test_without_any_route_out_the_console_alone_is_told(room: Room) -> None:
    room.boot(replace(trainer("completes"), route_out=False), contact_seconds=0)

    assert room.turned_itself_off()
    assert "route_control_plane: The control plane can't be reached" in room.console
    assert room.agent.calls == []
