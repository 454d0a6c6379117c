"""`python -m bench [NAME]`: prints one benchmark's table, or all of them."""

from __future__ import annotations

import importlib
import pkgutil
import sys

from rich.console import Console

import bench


def main() -> int:
    known = [
        module.name for module in pkgutil.iter_modules(bench.__path__) if not module.name.startswith("_")
    ]
    asked = sys.argv[1:] or known
    if unknown := [name for name in asked if name not in known]:
        sys.stderr.write(f"No benchmark {', '.join(unknown)}; there are {', '.join(known)}.\n")
        return 2
    console = Console()
    for name in asked:
        console.print(importlib.import_module(f"bench.{name}").table())
    return 0


sys.exit(main())
