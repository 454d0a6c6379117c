"""`tensorant adapter verify`: the control plane's own judgement of an archive, on this computer and without an account."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from tensorant.contract import AdapterNorms, JobSpec, Manifest, VerificationReport
from tensorant.verification import Expected, FileArchive, verify
from tensorant_cli.errors import CliError
from tensorant_cli.formats import size
from tensorant_cli.options import AsJson, examples
from tensorant_cli.output import console, facts, note, say, say_json, show_error

UNSOUND = 1
CANNOT_TELL = 2
MAX_JSON_BYTES = 4 << 20

app = typer.Typer(no_args_is_help=True, help="Adapter archives on this computer.")


class CannotTell(CliError):
    """Neither sound nor unsound: something could not be read."""


@app.callback()
def adapter() -> None:
    """Adapter archives on this computer."""


@app.command(
    "verify",
    epilog=examples(
        "tensorant adapter verify adapter.zip",
        "tensorant runs show last --json > run.json",
        "tensorant adapter verify adapter.zip --run-spec run.json",
        "tensorant adapter verify adapter.zip --manifest adapter.manifest.json --json",
    ),
)
def verify_file(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The archive, adapter.zip.", show_default=False)
    ],
    *,
    run_spec: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The run's job: what `runs show --json` prints, or the job alone. Without it the archive is held "
            "against its own manifest.",
            show_default=False,
        ),
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The object beside the archive, adapter.manifest.json: then its size and hash count too.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Judge an archive. Exit code 0: sound; 1: unsound; 2: it can't be told."""
    try:
        report = _judged(file, run_spec, manifest)
    except CannotTell as error:
        if as_json:
            print(
                json.dumps({"sound": None, "error": {"message": error.message, "mend": error.mend}}, indent=2)
            )
        else:
            show_error(error)
        raise typer.Exit(CANNOT_TELL) from None
    if as_json:
        say_json(report)
    else:
        show(report)
    if not report.sound:
        raise typer.Exit(UNSOUND)


def show(report: VerificationReport) -> None:
    """The report as a person reads it: the verdict first, then what was seen."""
    if report.fault is None:
        say("Sound: the archive holds a finished, trained adapter.")
    else:
        say(f"Unsound ({report.fault.code}, {report.fault.fault_class}): {report.fault.message}")
        say(f"Mend: {report.fault.mend}")
    console().print(facts(lines(report)))
    for warning in report.warnings:
        note(f"Warning: {warning}")


def lines(report: VerificationReport) -> dict[str, str]:
    """What is known of the adapter, by name; nothing that the verifier did not get to."""
    found = {"Checks passed": ", ".join(report.checks) or "none"}
    if report.manifest is not None:
        told = report.manifest
        found["Run"] = f"{told.run_id}, attempt {told.attempt}, {told.steps_done} of {told.steps_total} steps"
        found["Base model"] = f"{told.base.repository} at {told.base.revision}"
    if report.tensors:
        found["Adapter"] = shape(report)
        found["Tensors"] = f"{report.tensors} ({', '.join(report.dtypes)}), {report.parameters:,} parameters"
    if report.norms is not None:
        found["Norms"] = norms(report.norms)
    if report.archive is not None:
        found["Archive"] = f"{size(report.archive.size)}, SHA-256 {report.archive.sha256}"
    for name, digest in report.files.items():
        found[name] = f"{size(digest.size)}, SHA-256 {digest.sha256}"
    return found


def norms(measured: AdapterNorms) -> str:
    return (
        f"update {measured.update:.4g} (A {measured.lora_a:.4g}, B {measured.lora_b:.4g}), the most in "
        f"{measured.largest_module} ({measured.largest_update:.4g}); largest number {measured.largest_value:.4g}"
    )


def shape(report: VerificationReport) -> str:
    """What kind of adapter it is, of which ranks, and how much of the base model it changes."""
    ranks = ", ".join(map(str, report.ranks))
    of = f" of {report.base_modules}" if report.base_modules else ""
    return f"{report.variant}, rank {ranks}, {report.modules}{of} modules"


def _judged(file: Path, run_spec: Path | None, manifest: Path | None) -> VerificationReport:
    spec = _job(run_spec) if run_spec else None
    stated = _manifest(manifest) if manifest else None
    expected = Expected(
        run_id=spec.run_id if spec else None, spec=spec, archive=stated.archive if stated else None
    )
    try:
        with FileArchive(file) as archive:
            return verify(archive, expected)
    except OSError as error:
        raise _unreadable(file, error) from error


def _job(path: Path) -> JobSpec:
    """The job itself, or the run that `runs show` prints around it."""
    found = _object(path)
    for name in ("run", "spec"):
        found = found[name] if isinstance(found.get(name), dict) else found
    try:
        return JobSpec.model_validate(found)
    except ValidationError as error:
        raise CannotTell(
            f"{path} is not a run's job: {_field(error)} is missing or wrong.",
            mend="Write it with `tensorant runs show RUN --json`.",
        ) from None


def _manifest(path: Path) -> Manifest:
    try:
        stated = Manifest.model_validate(_object(path))
    except ValidationError as error:
        raise CannotTell(
            f"{path} is not a manifest: {_field(error)} is missing or wrong.",
            mend="Take adapter.manifest.json from beside the archive.",
        ) from None
    if stated.archive is None:
        raise CannotTell(
            f"{path} does not state the archive's size and hash.",
            mend="Take adapter.manifest.json from beside the archive, not manifest.json from within it.",
        )
    return stated


def _object(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(MAX_JSON_BYTES))
    except OSError as error:
        raise _unreadable(path, error) from error
    except ValueError as error:
        raise CannotTell(f"{path} is not JSON.", mend="Name a file that the help describes.") from error
    if not isinstance(found, dict):
        raise CannotTell(f"{path} is not a JSON object.", mend="Name a file that the help describes.")
    return found


def _field(error: ValidationError) -> str:
    return ".".join(map(str, error.errors()[0]["loc"])) or "it"


def _unreadable(path: Path, error: OSError) -> CannotTell:
    return CannotTell(f"{path} can't be read: {error.strerror}.", mend="Name a file that you may read.")
