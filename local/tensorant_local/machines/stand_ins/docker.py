"""`docker`: version, info, pull, and run, which starts the trainer as a process of this computer, on its CPU.

`run` with `nvidia-smi` as its entry point says what a container sees. Words and statuses of failures are
those of Docker 28.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from tensorant_local.machines.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DAEMON_FAULT = 125
NOT_FOUND = 127
"""Docker's own statuses: the container was never started; its command is not in the image."""
_TRAINER_PATHS = {"/workspace/data": "--data", "/run/tensorant/session.json": "--session"}
"""Paths inside the container → the trainer's option that says where they lie here."""


def main(arguments: Sequence[str]) -> None:
    machine = Layout.of_this_machine()
    if not machine.options.docker_answers:
        sys.exit(
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
        )
    match arguments:
        case ["version", "--format", "{{.Server.Version}}"]:
            print("28.2.2")
        case ["info", "--format", "{{json .Runtimes}}"]:
            print('{"nvidia":{},"runc":{}}' if machine.options.nvidia_runtime else '{"runc":{}}')
        case ["pull", "--quiet", image]:
            _pull(machine, image)
        case ["run", *rest]:
            sys.exit(_run(machine, rest))
        case _:
            sys.exit(f"docker (stand-in): not understood: {arguments}")


def _pull(machine: Layout, image: str) -> None:
    if not machine.options.pull_succeeds:
        sys.exit(f"Error response from daemon: manifest for {image} not found: manifest unknown")
    if not machine.options.disk_holds_image:
        sys.exit("failed to register layer: write /opt/trainer/lib/libcuda.so: no space left on device")
    with machine.images.open("a", encoding="utf-8") as images:
        images.write(f"{image}\n")
    print(image)


def _run(machine: Layout, arguments: Sequence[str]) -> int:
    """Runs the container in the foreground; its exit status, 128 and the signal's number if it was killed."""
    asked = _parser().parse_args(arguments)
    options = machine.options
    if fault := _fault(machine, asked):
        return _refused(fault, DAEMON_FAULT)
    if asked.entrypoint == "nvidia-smi":
        print(options.gpu_name)
        return 0
    if not options.container_starts:
        return _refused('exec: "python": executable file not found in $PATH: unknown', NOT_FOUND)
    volumes = [volume.split(":") for volume in asked.volume]
    places = [word for volume in volumes for word in (_TRAINER_PATHS[volume[1]], volume[0])]
    trainer = subprocess.Popen(
        [*options.trainer_command, *asked.command, *places],
        env=_environment(machine, options.trainer_environment),
    )
    signal.signal(
        signal.SIGTERM, signal.SIG_IGN
    )  # at a shut-down the trainer gets its own, and may take its time
    machine.trainer_process.write_text(str(trainer.pid), encoding="utf-8")
    status = trainer.wait()
    machine.trainer_process.unlink()
    return status if status >= 0 else 128 - status


def _refused(fault: str, status: int) -> int:
    print(f"docker: Error response from daemon: {fault}", file=sys.stderr)
    print("\nRun 'docker run --help' for more information", file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="docker run (stand-in)", allow_abbrev=False)
    parser.add_argument("--rm", action="store_true")
    parser.add_argument("--name")
    parser.add_argument("--entrypoint", choices=["nvidia-smi"])
    parser.add_argument("--gpus", required=True)
    parser.add_argument("--network", choices=["none"])
    parser.add_argument("--cap-drop", choices=["ALL"])
    parser.add_argument("--security-opt", choices=["no-new-privileges"])
    parser.add_argument("--log-driver", choices=["none"])
    parser.add_argument("--shm-size")
    parser.add_argument("--stop-timeout", type=int)
    parser.add_argument("--volume", action="append", default=[])
    parser.add_argument("image")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser


def _fault(machine: Layout, asked: argparse.Namespace) -> str | None:
    if not machine.options.gpu_in_container:
        return "failed to create task for container: nvidia-container-cli: initialization error: driver error"
    if not machine.images.exists() or asked.image not in machine.images.read_text(encoding="utf-8").split():
        return f"No such image: {asked.image}"
    name = machine.folder / f"container.{asked.name}"
    if asked.rm:
        return None
    if name.exists():
        return f'Conflict. The container name "/{asked.name}" is already in use.'
    name.touch()
    return None


def _environment(machine: Layout, image: Mapping[str, str]) -> dict[str, str]:
    """A container sees nothing of the host's environment; it has its own tools and a home folder."""
    home = machine.folder / "tmp" / "home"
    home.mkdir(exist_ok=True)
    proxies = {name: value for name, value in os.environ.items() if name.endswith("_proxy")}
    own = {"PATH": os.defpath, "HOME": str(home), "TMPDIR": str(machine.folder / "tmp"), "LANG": "C.UTF-8"}
    return {**own, **proxies, **image}


main(sys.argv[1:])
