"""The real boot scripts on simulated machines, against an agent API on loopback."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tensorant.boot.render import user_data
from tensorant.contract import EventType
from tensorant_trainer.session import read_session
from tests.support.fake_agent import IMAGE, TOKEN
from tests.support.machine_room import ID, SOON, Room, a_room, trainer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    with a_room(tmp_path) as room:
        yield room


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """A machine that has trained, and was never released."""
    with a_room(tmp_path_factory.mktemp("machines")) as room:
        room.boot(trainer("completes"))
        assert room.turned_itself_off()
        yield room


def test_a_good_run_is_reported_step_by_step(finished: Room) -> None:
    assert finished.agent.types() == [
        EventType.BOOTED,
        EventType.PREFLIGHT_PASSED,
        EventType.IMAGE_PULLED,
        EventType.STARTED,
        EventType.COMPLETED,
    ]
    assert [event.seq for event in finished.of_host()] == [0, 1, 2]
    assert finished.agent.heartbeats
    assert finished.agent.unauthorized == []


def test_the_data_directory_is_the_trainers_workspace(finished: Room) -> None:
    assert (finished.disk / "var/lib/tensorant/data/adapter.zip").read_bytes() == b"an adapter"


def test_the_trainer_finds_a_session_that_root_alone_can_read(finished: Room) -> None:
    file = finished.disk / "run/tensorant/session.json"

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    session = read_session(file)
    assert (session.url, session.run_id, session.attempt) == (finished.agent.url, "run-1", 1)


def test_the_host_ships_its_own_lines_and_no_token(finished: Room) -> None:
    said = "\n".join(finished.agent.log)

    assert "GPU NVIDIA L4, driver 580.126.09" in said
    assert f"Pulling {IMAGE}" in said
    assert "one-time" not in said + finished.console
    assert TOKEN not in said + finished.console


def test_a_restart_trains_nothing_and_ends_with_the_recovery_window(finished: Room) -> None:
    told = len(finished.agent.calls)

    finished.boot(trainer("completes"), first=False, recovery_window_seconds=1)

    assert finished.turned_itself_off()
    assert "Restarted for recovery. Nothing is trained; this machine powers off in 1 s." in finished.console
    assert len(finished.agent.calls) == told
    assert (finished.disk / "var/lib/tensorant/data/adapter.zip").exists()


def test_even_a_boot_that_looks_like_the_first_does_not_train_again(finished: Room) -> None:
    told = len(finished.agent.calls)

    finished.boot(trainer("completes"), recovery_window_seconds=2)

    assert finished.turned_itself_off()
    assert "This attempt has run before; nothing is trained again." in finished.console
    assert len(finished.agent.calls) == told


def test_a_machine_that_is_not_wanted_turns_itself_off_without_waiting(room: Room) -> None:
    room.agent.faults["/agent/v1/sessions"].append(409)

    room.boot(trainer("completes"), release_wait_seconds=600)

    assert room.turned_itself_off()
    assert "This machine is not wanted" in room.console
    assert room.agent.events == []


def test_an_exchange_whose_answer_got_lost_is_repeated_with_the_same_nonce(room: Room) -> None:
    room.agent.faults["/agent/v1/sessions"].extend([503, 503])

    room.boot(trainer("completes"))

    assert room.turned_itself_off()
    assert len(room.agent.exchanges) == 3
    assert len({exchange.nonce for exchange in room.agent.exchanges}) == 1
    assert EventType.COMPLETED in room.agent.types()


def test_a_killed_trainer_is_reported_with_its_status(room: Room) -> None:
    room.boot(trainer("hangs"))
    assert room.agent.wait_for(EventType.STARTED, SOON)

    room.machines.kill_trainer(ID)

    assert room.turned_itself_off()
    last = room.of_host()[-1]
    assert (last.type, last.exit_code) == (EventType.TRAINER_EXITED, 137)


def test_the_last_words_of_a_trainer_that_died_young_are_shipped(room: Room) -> None:
    room.boot(trainer("crashes"))

    assert room.turned_itself_off()
    assert room.of_host()[-1].exit_code == 1
    assert any("libcuda.so.1" in line for line in room.agent.log)


def test_the_deadline_turns_the_machine_off_whatever_it_is_doing(room: Room) -> None:
    room.boot(trainer("hangs"), deadline_seconds=3)

    assert room.turned_itself_off()
    assert not room.machines.is_running(ID)
    assert processes_of(room.disk) == []
    assert (room.disk / "var/lib/tensorant").is_dir()


def test_a_machine_that_is_stopped_keeps_its_disk_and_nothing_of_it_runs(room: Room) -> None:
    room.boot(trainer("hangs"))
    assert room.agent.wait_for(EventType.STARTED, SOON)

    room.machines.power_off(ID)

    assert not room.machines.is_running(ID)
    assert processes_of(room.disk) == []
    assert (room.disk / "var/lib/tensorant/data").is_dir()
    assert room.heard.empty()


def test_a_machine_that_is_destroyed_leaves_only_its_console(room: Room) -> None:
    room.boot(trainer("hangs"))
    assert room.agent.wait_for(EventType.STARTED, SOON)

    room.machines.destroy(ID)
    room.machines.destroy(ID)

    assert processes_of(room.disk) == []
    assert [item.name for item in room.disk.parent.iterdir()] == ["console.log"]
    assert "Starting the trainer" in room.console
    assert room.heard.empty()


def test_machines_do_not_outlive_the_process_that_hosts_them(room: Room, tmp_path: Path) -> None:
    (tmp_path / "user-data").write_text(user_data(room.parameters()))
    script = (
        "import sys, time; from pathlib import Path; from tensorant_local.machines.host import SimulatedMachines;"
        "folder = Path(sys.argv[1]); machines = SimulatedMachines(folder);"
        f"machines.boot('{ID}', (folder / 'user-data').read_bytes(), True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], env=environment()) as host:
        assert within(SOON, lambda: processes_of(room.disk) != [])
        host.kill()

    assert within(SOON, lambda: processes_of(room.disk) == [])


def test_a_running_machine_cannot_be_booted_again(room: Room) -> None:
    room.boot(trainer("hangs"))

    with pytest.raises(RuntimeError, match="is running"):
        room.boot(trainer("hangs"))


def test_no_trainer_can_be_killed_where_none_runs(room: Room) -> None:
    with pytest.raises(LookupError):
        room.machines.kill_trainer(ID)


def test_a_timer_that_would_wait_for_the_boot_is_refused(room: Room) -> None:
    config = b"#cloud-config\nbootcmd: [[systemd-run, --unit=late, --on-boot=1, systemctl, poweroff], [systemctl, poweroff]]"

    room.machines.boot(ID, config, True)

    assert room.turned_itself_off()
    assert "during boot this needs --no-block" in room.console


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        (b"#!/bin/sh\necho hello\n", "does not begin with"),
        (b"#cloud-config\npackages: [docker]\n", "cloud-config keys ['packages']"),
        (
            b"#cloud-config\nwrite_files: [{path: /a, content: b, defer: true}]\n",
            "write_files keys ['defer']",
        ),
        (b"#cloud-config\nbootcmd: [docker compose up]\n", "docker (stand-in): not understood"),
        (b"#cloud-config\nruncmd: [[systemctl, enable, x]]\n", "systemctl (stand-in): not understood"),
    ],
)
def test_what_a_machine_does_not_understand_it_names(room: Room, config: bytes, complaint: str) -> None:
    room.machines.boot(ID, config, True)

    assert within(SOON, lambda: complaint in room.console)


def environment() -> dict[str, str]:
    """This process's own, with its import path."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def within(seconds: float, happened: Callable[[], bool]) -> bool:
    give_up_at = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.02)
    return True


def processes_of(disk: Path) -> list[str]:
    """Command lines of live processes that belong to the machine with this disk (Linux; elsewhere none are seen)."""
    mark = f"ROOT={disk}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text())
        except OSError:  # it has ended, or is another user's
            continue
    return found
