"""Cloud-init, as much of it as user data of ours uses, in its order.

At every boot `bootcmd`; at an instance's first boot also `write_files` and then `runcmd`
(cloud-init's module reference: frequencies "always" and "once-per-instance"). A key outside of these is
refused by name, where the real one would pass over it.
"""

from __future__ import annotations

import gzip
import subprocess
from base64 import b64decode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorant_local.machines.layout import Layout

Command = str | list[str]

HEADER = b"#cloud-config\n"
_KEYS = {"bootcmd", "write_files", "runcmd"}
_FILE_KEYS = {"path", "content", "encoding", "permissions", "owner"}


class NotSimulatedError(ValueError):
    """The user data uses something of cloud-init that these machines do not have."""


@dataclass(frozen=True)
class File:
    path: str
    content: bytes
    permissions: int


@dataclass(frozen=True)
class CloudConfig:
    bootcmd: Sequence[Command]
    write_files: Sequence[File]
    runcmd: Sequence[Command]


def parse(user_data: bytes) -> CloudConfig:
    """Read user data. Raises `NotSimulatedError` for what is no cloud-config or not understood."""
    if not user_data.startswith(HEADER):
        raise NotSimulatedError(f"user data does not begin with {HEADER!r}")
    config = yaml.safe_load(user_data)
    if unknown := set(config) - _KEYS:
        raise NotSimulatedError(f"cloud-config keys {sorted(unknown)}")
    return CloudConfig(
        bootcmd=config.get("bootcmd", []),
        write_files=[_file(item) for item in config.get("write_files", [])],
        runcmd=config.get("runcmd", []),
    )


def boot(config: CloudConfig, layout: Layout, *, first: bool) -> None:
    """Run the stages in order. A failing command is noted on the console and does not end the boot."""
    for command in config.bootcmd:
        _run(command)
    layout.booting.unlink()
    if not first:
        return
    for file in config.write_files:
        target = layout.inside(file.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.permissions)
    for command in config.runcmd:
        _run(command)


def _file(item: Mapping[str, Any]) -> File:
    if unknown := set(item) - _FILE_KEYS:
        raise NotSimulatedError(f"write_files keys {sorted(unknown)}")
    content = item["content"]
    return File(
        path=item["path"],
        content=_decoded(
            content.encode() if isinstance(content, str) else content, item.get("encoding", "text/plain")
        ),
        permissions=int(str(item.get("permissions", "0644")), 8),
    )


def _decoded(content: bytes, encoding: str) -> bytes:
    match encoding:
        case "text/plain":
            return content
        case "b64" | "base64":
            return b64decode(content)
        case "gz+b64" | "gzip+base64":
            return gzip.decompress(b64decode(content))
        case _:
            raise NotSimulatedError(f"write_files encoding {encoding}")


def _run(command: Command) -> None:
    """A list is a program and its arguments, a string is for the shell."""
    arguments = ["sh", "-c", command] if isinstance(command, str) else command
    status = subprocess.run(arguments, check=False).returncode
    if status:
        print(f"cloud-init: {arguments[0]} ended with status {status}", flush=True)
