"""The functions' bundle: our sources and their dependencies for Lambda's platform, made without Docker.

The same inputs give the same asset hash; without bundling the sources alone are staged, and nothing is installed.
docs/adr/0002 and 0003 say why the runtime's Python and this way of bundling were chosen.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import jsii
import uv
from aws_cdk import aws_lambda as lambda_

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Runner = Callable[[Sequence[str]], None]
    """Runs a command to its end; raises if it fails."""

ROOT = Path(__file__).parents[1]
FUNCTIONS = ROOT / "functions"
REQUIREMENTS = ROOT / "requirements" / "runtime.txt"

RUNTIME = lambda_.Runtime.PYTHON_3_13
PYTHON = "3.13"
"""The runtime's Python: dependencies are chosen for it, and only its own minor version can compile for it."""
ARCHITECTURE = lambda_.Architecture.ARM_64
PLATFORM = "aarch64-manylinux2014"
DEPLOYED_AT = "/var/task"
"""Where Lambda unpacks the bundle; tracebacks name files under it."""

AWS_SERVICES = frozenset(
    {
        "dynamodb",
        "ec2",
        "events",
        "iam",
        "lambda",
        "logs",
        "pricing",
        "s3",
        "secretsmanager",
        "service-quotas",
        "stepfunctions",
        "sts",
    }
)
"""Services whose description the bundle keeps; botocore brings hundreds, 25 MB of them."""

MAXIMUM_MIB = 60
"""Our own budget, unpacked. Lambda's limit is 250 MB."""

_NOT_DEPLOYED = ("__pycache__", "*.pyc")
_NOT_NEEDED = ("bin", ".lock", "**/*.pyi", "**/__pycache__", "boto3/examples")
_INSTALLER_NOTES = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")


class BundleTooLarge(RuntimeError):
    """The bundle outgrew its budget; the message names its largest parts."""


def code(stack: cdk.Stack, *, run: Runner | None = None) -> lambda_.Code:
    """The code of every function: bundled where `stack` is bundled, else the bare sources.

    Context `aws:cdk:bundling-stacks` (`[]` for none) decides, as for any CDK app.
    """
    if not stack.bundling_required:
        return lambda_.Code.from_asset(str(FUNCTIONS), exclude=["**/__pycache__", "**/*.pyc"])
    compiler = find_python(PYTHON)
    if compiler is None:
        cdk.Annotations.of(stack).add_warning_v2(
            "tensorant:bytecode",
            f"No Python {PYTHON} was found: functions are deployed without bytecode and start slower. "
            f"`uv python install {PYTHON}` mends it.",
        )
    return lambda_.Code.from_asset(
        str(FUNCTIONS),
        asset_hash_type=cdk.AssetHashType.CUSTOM,
        asset_hash=asset_hash(FUNCTIONS, REQUIREMENTS, compiled=compiler is not None),
        bundling=cdk.BundlingOptions(
            image=RUNTIME.bundling_image, local=LocalBundling(compiler, run or run_command)
        ),
    )


@jsii.implements(cdk.ILocalBundling)
class LocalBundling:
    """Bundles with uv on this machine. It never asks CDK to fall back to Docker: a failure is raised."""

    def __init__(self, compiler: str | None, run: Runner) -> None:
        self._compiler = compiler
        self._run = run

    def try_bundle(self, output_dir: str, options: Any = None, **_rest: Any) -> bool:  # noqa: ARG002 - jsii's shape
        bundle(Path(output_dir), compiler=self._compiler, run=self._run)
        return True


def bundle(target: Path, *, compiler: str | None, run: Runner) -> None:
    """Fill the empty folder `target`. Without a `compiler` (a Python of the runtime's minor) it holds no bytecode.

    Raises `BundleTooLarge`, and what `run` raises when a command fails.
    """
    run(install_command(target))
    _drop_unneeded(target)
    shutil.copytree(
        FUNCTIONS / "tensorant", target / "tensorant", ignore=shutil.ignore_patterns(*_NOT_DEPLOYED)
    )
    if compiler is not None:
        run(compile_command(compiler, target))
    _check_size(target)


def install_command(target: Path) -> list[str]:
    """Install the pinned wheels for Lambda's platform, each checked against its hash; no package is built."""
    return [
        uv.find_uv_bin(),
        *("pip", "install", "--quiet", "--python", sys.executable),
        *("--target", str(target), "--link-mode", "copy"),
        *("--python-platform", PLATFORM, "--python-version", PYTHON, "--only-binary", ":all:"),
        *("--require-hashes", "--requirements", str(REQUIREMENTS)),
    ]


def compile_command(compiler: str, target: Path) -> list[str]:
    """Compile in place. Unchecked hashes: Lambda's file times mean nothing, and the sources cannot change."""
    return [
        compiler,
        *("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"),
        *("-s", str(target), "-p", DEPLOYED_AT, str(target)),
    ]


def run_command(command: Sequence[str]) -> None:
    """A `Runner`. What the command prints goes to stderr: stdout is the CDK command line's."""
    subprocess.run(command, check=True, stdout=sys.stderr)  # noqa: S603 - built here, from constants


def asset_hash(sources: Path, requirements: Path, *, compiled: bool) -> str:
    """SHA-256 over all that decides what the bundle holds, in an order of its own."""
    digest = hashlib.sha256()
    for part in (PLATFORM, PYTHON, "bytecode" if compiled else "sources"):
        digest.update(part.encode() + b"\0")
    for path in (Path(__file__), requirements):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    for path in _deployed_files(sources):
        digest.update(path.relative_to(sources).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def find_python(version: str) -> str | None:
    """A Python of exactly this minor version: this one, the PATH's, or one that uv knows; None if there is none."""
    for candidate in (sys.executable, shutil.which(f"python{version}"), _known_to_uv(version)):
        if (
            candidate
            and _answer(candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])") == version
        ):
            return candidate
    return None


def _known_to_uv(version: str) -> str | None:
    return _answer(uv.find_uv_bin(), "python", "find", version)


def _answer(*command: str) -> str | None:
    """What a command prints; None if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    return done.stdout.strip() if done.returncode == 0 else None


def _deployed_files(sources: Path) -> Iterator[Path]:
    for path in sorted(sources.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def _drop_unneeded(target: Path) -> None:
    """What a function never reads: command lines, type stubs, other services, installer's notes."""
    for pattern in _NOT_NEEDED:
        _remove(target.glob(pattern))
    _remove(
        path for path in target.glob("botocore/data/*/") if path.is_dir() and path.name not in AWS_SERVICES
    )
    for note in _INSTALLER_NOTES:
        _remove(target.glob(f"*.dist-info/{note}"))


def _remove(paths: Iterable[Path]) -> None:
    for path in list(paths):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _check_size(target: Path) -> None:
    sizes = {part.name: _size(part) for part in target.iterdir()}
    total = sum(sizes.values())
    if total > MAXIMUM_MIB * 2**20:
        largest = sorted(sizes, key=lambda name: sizes[name], reverse=True)[:5]
        parts = ", ".join(f"{name} {sizes[name] / 2**20:.1f} MiB" for name in largest)
        raise BundleTooLarge(f"{total / 2**20:.1f} MiB unpacked, budget {MAXIMUM_MIB} MiB: {parts}")


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def main() -> None:
    """Build the bundle under dist/, to look at or to check; a deployment builds its own."""
    target = ROOT / "dist" / "functions"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    compiler = find_python(PYTHON)
    bundle(target, compiler=compiler, run=run_command)
    form = f"bytecode of Python {PYTHON}" if compiler else f"no bytecode: no Python {PYTHON} was found"
    sys.stdout.write(f"{target.relative_to(ROOT)}: {_size(target) / 2**20:.1f} MiB unpacked, {form}\n")


if __name__ == "__main__":
    main()
