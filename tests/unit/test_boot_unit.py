"""The systemd unit of the run: what it may do, and what it must still be able to do."""

from __future__ import annotations

from configparser import RawConfigParser
from pathlib import Path

import pytest

from tensorant import boot

FOLDER = Path(boot.__file__).parent
STOP_TIMEOUT_SECONDS = 60  # run.sh: how long the trainer's container may take to end


class UnitFile(RawConfigParser):
    """Keys keep their case, as systemd's do."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


@pytest.fixture
def service() -> dict[str, str]:
    parser = UnitFile(strict=True)
    parser.read(FOLDER / "tensorant-run.service")
    return dict(parser["Service"])


def test_the_run_may_not_change_the_system(service: dict[str, str]) -> None:
    hardened = {
        "NoNewPrivileges": "yes",
        "ProtectSystem": "strict",
        "ProtectHome": "read-only",
        "PrivateTmp": "yes",
        "ProtectKernelTunables": "yes",
        "ProtectKernelLogs": "yes",
        "ProtectControlGroups": "yes",
        "ProtectHostname": "yes",
        "RestrictNamespaces": "yes",
        "RestrictRealtime": "yes",
        "RestrictSUIDSGID": "yes",
        "LockPersonality": "yes",
        "SystemCallArchitectures": "native",
        "UMask": "0077",
    }

    assert {key: service[key] for key in hardened} == hardened


def test_it_has_no_right_of_root_but_those_that_load_the_driver(service: dict[str, str]) -> None:
    assert service["CapabilityBoundingSet"].split() == [
        "CAP_CHOWN",
        "CAP_FOWNER",
        "CAP_MKNOD",
        "CAP_SYS_MODULE",
    ]


def test_it_writes_where_its_state_and_its_session_lie_and_nowhere_else(service: dict[str, str]) -> None:
    assert (service["StateDirectory"], service["StateDirectoryMode"]) == ("tensorant", "0700")
    assert (service["RuntimeDirectory"], service["RuntimeDirectoryMode"]) == ("tensorant", "0700")
    assert "ReadWritePaths" not in service


@pytest.mark.parametrize(
    "harmful",
    [
        *("PrivateDevices", "DevicePolicy", "DeviceAllow", "ProtectClock"),  # /dev/nvidia*
        *("ProtectKernelModules", "MemoryDenyWriteExecute", "SystemCallFilter"),  # the driver
        *("PrivateNetwork", "PrivateUsers", "User", "DynamicUser"),  # the way out, Docker
        "Restart",  # a training is never begun again
    ],
)
def test_what_would_break_a_run_is_left_out(service: dict[str, str], harmful: str) -> None:
    assert harmful not in service


def test_it_reaches_docker_systemd_and_the_network(service: dict[str, str]) -> None:
    assert {"AF_UNIX", "AF_INET", "AF_INET6"} <= set(service["RestrictAddressFamilies"].split())


def test_it_speaks_on_the_console_too(service: dict[str, str]) -> None:
    assert (service["StandardOutput"], service["StandardError"]) == ("journal+console", "journal+console")


def test_a_stop_waits_for_the_trainer(service: dict[str, str]) -> None:
    assert f"--stop-timeout {STOP_TIMEOUT_SECONDS} " in (FOLDER / "run.sh").read_text(encoding="utf-8")
    assert int(service["TimeoutStopSec"]) > STOP_TIMEOUT_SECONDS
