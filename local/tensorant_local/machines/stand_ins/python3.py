"""`python3 SCRIPT ARGUMENTS`: this computer's Python without its packages, on the machine's network.

Names of the outside lead to the simulated registry; what the options call unreachable fails as it does on
a real network, only sooner.
"""

from __future__ import annotations

import errno
import os
import runpy
import socket
import sys
from typing import Any

from tensorant_local.machines.layout import REGISTRY_VARIABLE, Layout

_CLOSED_PORT = 9
"""Discard, at which nobody listens."""

unreachable = Layout.of_this_machine().options.unreachable
real_connection = socket.create_connection


def connection(address: Any, *arguments: Any, **named: Any) -> socket.socket:
    """In place of `socket.create_connection`, by which all of Python's HTTP goes out."""
    host, port = address
    match unreachable.get(f"{host}:{port}", unreachable.get(host)):
        case "dns":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        case "timeout":
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        case "no_route":
            raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))
        case "refused":
            return real_connection(("127.0.0.1", _CLOSED_PORT), *arguments, **named)
        case "tls" | None:
            return real_connection(_leads_to(host, port), *arguments, **named)
        case unknown:
            sys.exit(f"python3 (stand-in): not understood: unreachable by {unknown}")


def _leads_to(host: str, port: int) -> tuple[str, int]:
    return (host, port) if host == "127.0.0.1" else ("127.0.0.1", int(os.environ[REGISTRY_VARIABLE]))


if "tls" in unreachable.values():
    os.environ.pop("SSL_CERT_FILE", None)  # the authority behind the simulated registry is a stranger's now
socket.create_connection = connection
sys.path = [path for path in sys.path if path != os.environ["PYTHONPATH"]]
del os.environ["PYTHONPATH"]
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
