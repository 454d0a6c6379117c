"""The bundle: the commands that fill it, what is left out of it, and the hash that names it. Nothing is downloaded."""

from __future__ import annotations

import ast
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk import aws_lambda as lambda_

from infra import packaging

if TYPE_CHECKING:
    from collections.abc import Sequence

INSTALLED = {
    "bin/normalizer": "",
    ".lock": "",
    "httpx/__init__.py": "x = 1",
    "httpx/__init__.pyi": "x: int",
    "httpx/py.typed": "",
    "httpx-1.0.dist-info/METADATA": "Name: httpx",
    "httpx-1.0.dist-info/RECORD": "",
    "httpx-1.0.dist-info/INSTALLER": "uv",
    "boto3/examples/s3.rst": "",
    "botocore/data/endpoints.json": "{}",
    "botocore/data/dynamodb/2012-08-10/service-2.json.gz": "",
    "botocore/data/sagemaker/2017-07-24/service-2.json.gz": "",
}


@dataclass
class FakeRunner:
    """Notes commands; in place of an installation, writes what one leaves behind."""

    content: dict[str, str] = field(default_factory=lambda: dict(INSTALLED))
    commands: list[list[str]] = field(default_factory=list)

    def __call__(self, command: Sequence[str]) -> None:
        self.commands.append(list(command))
        if "install" in command:
            target = Path(options(command)["--target"])
            for name, text in self.content.items():
                path = target / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")


def options(command: Sequence[str]) -> dict[str, str]:
    """Each option with the word after it."""
    return {
        word: after for word, after in zip(command, [*command[1:], ""], strict=True) if word.startswith("-")
    }


def test_wheels_are_pinned_hashed_and_for_lambdas_platform(tmp_path: Path) -> None:
    run = FakeRunner()

    packaging.bundle(tmp_path, compiler=None, run=run)

    (install,) = run.commands
    assert Path(install[0]).stem == "uv"
    given = options(install)
    assert given["--python-platform"] == "aarch64-manylinux2014"
    assert given["--python-version"] == "3.13"
    assert given["--only-binary"] == ":all:"
    assert "--require-hashes" in given
    assert given["--requirements"] == str(packaging.REQUIREMENTS)
    assert given["--target"] == str(tmp_path)


def test_what_functions_never_read_is_left_out(tmp_path: Path) -> None:
    packaging.bundle(tmp_path, compiler=None, run=FakeRunner())

    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert {name for name in left if not name.startswith("tensorant/")} == {
        "httpx/__init__.py",
        "httpx/py.typed",
        "httpx-1.0.dist-info/METADATA",
        "botocore/data/endpoints.json",
        "botocore/data/dynamodb/2012-08-10/service-2.json.gz",
    }
    assert "tensorant/contract.py" in left
    assert not [name for name in left if "__pycache__" in name]


def test_with_a_python_of_the_runtime_it_is_compiled_for_where_it_will_lie(tmp_path: Path) -> None:
    run = FakeRunner()

    packaging.bundle(tmp_path, compiler="/usr/bin/python3.13", run=run)

    assert run.commands[1:] == [
        [
            "/usr/bin/python3.13",
            *("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"),
            *("-s", str(tmp_path), "-p", "/var/task", str(tmp_path)),
        ]
    ]


def test_the_compile_command_makes_bytecode_that_trusts_its_sources(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("answer = 42\n", encoding="utf-8")

    packaging.run_command(packaging.compile_command(sys.executable, tmp_path))

    (compiled,) = tmp_path.rglob("*.pyc")
    content = compiled.read_bytes()
    assert content[4:8] == (1).to_bytes(4, "little")  # PEP 552: hash-based, source not checked
    assert b"/var/task/module.py" in content
    assert str(tmp_path).encode() not in content


def test_a_bundle_beyond_its_budget_is_refused_with_its_largest_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packaging, "MAXIMUM_MIB", 1)
    run = FakeRunner({"torch/libtorch.so": "x" * 2**21})

    with pytest.raises(packaging.BundleTooLarge, match=r"budget 1 MiB: torch 2\.0 MiB"):
        packaging.bundle(tmp_path, compiler=None, run=run)


def test_every_service_that_the_functions_call_is_kept() -> None:
    called = {
        call.args[0].value
        for path in (packaging.FUNCTIONS / "tensorant").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and _name_of(call.func) == "client" and call.args
        if isinstance(call.args[0], ast.Constant)
    }

    assert {"dynamodb", "s3"} <= called
    assert called <= packaging.AWS_SERVICES


def _name_of(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def test_cdk_stages_what_was_bundled(tmp_path: Path) -> None:
    stack = cdk.Stack(cdk.App(outdir=str(tmp_path)), "Stack")

    lambda_.Function(
        stack,
        "Function",
        runtime=packaging.RUNTIME,
        handler="tensorant.handler",
        code=packaging.code(stack, run=FakeRunner()),
    )

    (bundle,) = tmp_path.glob("asset.*")
    assert (bundle / "tensorant" / "contract.py").is_file()
    assert (bundle / "httpx" / "__init__.py").is_file()


@dataclass(frozen=True)
class Sources:
    root: Path
    requirements: Path

    def hash(self, *, compiled: bool = True) -> str:
        return packaging.asset_hash(self.root, self.requirements, compiled=compiled)


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    root, requirements = tmp_path / "functions", tmp_path / "runtime.txt"
    (root / "tensorant").mkdir(parents=True)
    (root / "tensorant" / "a.py").write_text("a = 1\n", encoding="utf-8")
    (root / "tensorant" / "b.py").write_text("b = 2\n", encoding="utf-8")
    requirements.write_text("httpx==1.0 --hash=sha256:00\n", encoding="utf-8")
    return Sources(root, requirements)


def test_the_same_inputs_have_the_same_hash_wherever_they_lie(sources: Sources, tmp_path: Path) -> None:
    copy = shutil.copytree(sources.root, tmp_path / "elsewhere")
    (copy / "tensorant" / "__pycache__").mkdir()
    (copy / "tensorant" / "__pycache__" / "a.cpython-313.pyc").write_bytes(b"\0")

    assert Sources(copy, sources.requirements).hash() == sources.hash()


def test_whatever_changes_the_bundle_changes_its_hash(sources: Sources) -> None:
    before = sources.hash()
    seen = {before, sources.hash(compiled=False)}

    (sources.root / "tensorant" / "a.py").write_text("a = 3\n", encoding="utf-8")
    seen.add(sources.hash())
    (sources.root / "tensorant" / "b.py").rename(sources.root / "tensorant" / "c.py")
    seen.add(sources.hash())
    sources.requirements.write_text("httpx==1.1 --hash=sha256:11\n", encoding="utf-8")
    seen.add(sources.hash())

    assert len(seen) == 5


def test_this_python_is_found_by_its_minor_version() -> None:
    assert packaging.find_python("{}.{}".format(*sys.version_info[:2])) == sys.executable


def test_a_python_that_nobody_has_is_not_found() -> None:
    assert packaging.find_python("3.1") is None
