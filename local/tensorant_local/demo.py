"""`tensorant demo`: a person's whole path, from nothing to a verified adapter and a released machine."""

from __future__ import annotations

import json
import shutil
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from tensorant_cli.adapters import FetchedAdapter, fetch_adapter
from tensorant_cli.checking import wait_for_check
from tensorant_cli.client import ApiClient
from tensorant_cli.datasets import upload_dataset
from tensorant_local.cloud import PROJECT
from tensorant_local.deployment import LocalDeployment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorant.contract import BaseModelRef
    from tensorant_cli.models import Connection, Fact, RunStatus

DATASET = PROJECT / "demo" / "dataset.jsonl"
SAY_EVERY_SECONDS = 10
PATIENCE_SECONDS = 900
POLL_SECONDS = 2
TRAINING: dict[str, dict[str, Any]] = {
    "smollm2": {"epochs": 2, "learning_rate": 5e-3, "batch_size": 4, "max_tokens": 512},
    "tiny": {"epochs": 2.5, "max_steps": 20, "learning_rate": 1e-2, "batch_size": 4, "max_tokens": 1024},
}
"""A trial: few rows and large steps, for a loss that visibly falls in a minute or two on two CPU cores."""

PHASES = (
    ("validate", "run_launched", "run_validated"),
    ("ask for the machine", "run_validated", "machine_pending"),
    ("boot", "machine_pending", "booted"),
    ("preflight and image", "booted", "image_pulled"),
    ("prepare model and data", "image_pulled", "dataset"),
    ("train", "dataset", "packed"),
    ("upload", "packed", "uploaded"),
    ("verify", "uploaded", "run_succeeded"),
    ("release, confirmed", "run_succeeded", "machine_released"),
)
"""Name, first and last fact of each phase."""


def main(*, model: str = "smollm2", console: Console | None = None) -> int:
    """Run the demo; 0 if the adapter is verified and the machine released."""
    out = console or Console(highlight=False)
    folder = PROJECT / ".tensorant" / "demo"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    out.print(
        "[bold]Tensorant demo[/bold]: real handlers, state machine, boot script, training and verification;"
    )
    out.print("simulated AWS account, GPU and prices.\n")
    with LocalDeployment() as deployment:
        seconds = deployment.cloud.startup_seconds["total"]
        say(out, f"The deployment is up at {deployment.api_url} after {seconds:.1f} s")
        say(out, f"Preparing the base model {model}")
        base = deployment.model(model)
        with ApiClient(deployment.api_url, deployment.owner.token) as client:
            return Demo(deployment, client, out, folder).run(base, TRAINING[model])


def say(out: Console, text: str) -> None:
    out.print(f"{datetime.now().astimezone():%H:%M:%S}  {text}", soft_wrap=True)


class Demo:
    """One walk along the path."""

    def __init__(self, deployment: LocalDeployment, client: ApiClient, out: Console, folder: Path) -> None:
        self._deployment = deployment
        self._client = client
        self._out = out
        self._folder = folder
        self._organization = ""

    def run(self, base: BaseModelRef, training: dict[str, Any]) -> int:
        self._organization = self._make_organization()
        compute, storage = self._connect("aws", "gpus"), self._connect("s3", "storage")
        project = self._client.create_project(
            self._organization, name="explain-errors", storage_connection_id=storage.id
        )
        say(self._out, f"Project {project.name}; uploading {DATASET.name}")
        dataset = upload_dataset(
            self._client, self._organization, project.id, DATASET, name="errors", sleep=time.sleep
        )
        say(
            self._out,
            f"Dataset version {dataset.id}: {dataset.status}, {dataset.rows} rows, {dataset.sha256}",
        )
        draft = {
            "name": "demo",
            "project_id": project.id,
            "connection_id": compute.id,
            "dataset_version_id": dataset.id,
            "base_model": base.model_dump(),
            "instance_types": ["g6.xlarge", "g5.xlarge"],
            "price_limit_usd_per_hour": "1.50",
            "time_limit_minutes": 30,
            "trial": True,
            "lora": {"rank": 8, "alpha": 16},
            "training": training,
        }
        run_id = self._client.draft_run(self._organization, draft).id
        self._review(run_id)
        say(self._out, f"Launching {run_id}")
        self._client.launch(self._organization, run_id)
        status = self._watch(run_id)
        return self._conclude(status)

    def _make_organization(self) -> str:
        with ApiClient(self._deployment.api_url, self._deployment.admin.token) as admin:
            organization = admin.create_organization(name="Acme", owner=self._deployment.owner.subject)
        say(self._out, f"Organization {organization.name}, made by the platform admin")
        return organization.id

    def _connect(self, kind: str, name: str) -> Connection:
        body = {"kind": kind, "name": name, **self._deployment.connection_bodies[kind]}
        connection = self._client.create_connection(self._organization, body)
        say(self._out, f"Connection {name} ({kind}): checking")
        connection = wait_for_check(self._client, self._organization, connection.id, sleep=time.sleep)
        for item in connection.checks:
            self._out.print(f"            {item.verdict:8} {item.name}: {item.seen}", soft_wrap=True)
        return connection

    def _review(self, run_id: str) -> None:
        quote = self._client.review(self._organization, run_id).quote
        parts = " + ".join(f"{part.name} ${part.usd_per_hour} ({part.basis})" for part in quote.parts)
        say(
            self._out,
            f"Quote: ${quote.usd_per_hour} an hour for {quote.instance_type} = {parts}; "
            f"not in it: {', '.join(quote.excluded)}",
        )

    # -- watching ----------------------------------------------------------------------------------------

    def _watch(self, run_id: str) -> RunStatus:
        """Say each new fact as it comes, and how the training goes."""
        said, spoke_at, give_up_at = 0, 0.0, time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < give_up_at:
            status = self._client.run(self._organization, run_id)
            facts = self._client.events(self._organization, run_id)
            for fact in facts[said:]:
                say(self._out, f"{fact.kind.replace('_', ' ')}{f': {fact.message}' if fact.message else ''}")
            said = len(facts)
            if status.ended:
                return status
            if status.phase == "training" and time.monotonic() - spoke_at > SAY_EVERY_SECONDS:
                spoke_at = time.monotonic()
                say(self._out, _progress(status))
            time.sleep(POLL_SECONDS)
        raise TimeoutError(f"The run {run_id} has not ended after {PATIENCE_SECONDS} s.")

    # -- what came of it ---------------------------------------------------------------------------------

    def _conclude(self, status: RunStatus) -> int:
        facts = self._client.events(self._organization, status.run.id)
        fetched = None
        if status.outcome == "succeeded":
            fetched = fetch_adapter(self._client, self._organization, status.run.id, self._folder / "adapter")
        self._out.print()
        self._out.print(_table(status, facts, fetched, self._provider_says(status)))
        self._write_result(status, facts, fetched)
        good = (
            status.outcome == "succeeded"
            and status.machine is not None
            and status.machine.state == "released"
        )
        return 0 if good else 1

    def _provider_says(self, status: RunStatus) -> str:
        """The instance's state from the provider's own books."""
        if status.machine is None or status.machine.instance_id is None:
            return "no instance"
        found = self._deployment.cloud.client("ec2").describe_instances(
            InstanceIds=[status.machine.instance_id]
        )
        return str(found["Reservations"][0]["Instances"][0]["State"]["Name"])

    def _write_result(self, status: RunStatus, facts: Sequence[Fact], fetched: FetchedAdapter | None) -> None:
        result = {
            "run_id": status.run.id,
            "outcome": status.outcome,
            "machine_state": status.machine.state if status.machine else None,
            "quote": status.quote.model_dump(mode="json") if status.quote else None,
            "cost_usd": str(status.cost_usd),
            "timeline": [fact.model_dump(mode="json") for fact in facts],
            "adapter": str(fetched.directory) if fetched else None,
        }
        path = self._folder / "result.json"
        path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        self._out.print(f"\n{path.relative_to(PROJECT)} says it all again for programs.")


def _progress(status: RunStatus) -> str:
    progress = status.progress
    if progress is None or progress.step is None:
        return "training: before the first step"
    left = f", {progress.seconds_left:.0f} s left" if progress.seconds_left is not None else ""
    loss = f", loss {progress.loss:.3f}" if progress.loss is not None else ""
    return f"training: step {progress.step} of {progress.steps_total}{loss}{left}, ${status.cost_usd} so far"


def _table(status: RunStatus, facts: Sequence[Fact], fetched: FetchedAdapter | None, provider: str) -> Table:
    table = Table("", "", title=f"Run {status.run.id}", show_header=False, title_justify="left")
    if quote := status.quote:
        table.add_row("quote", f"${quote.usd_per_hour} an hour: {quote.instance_type}")
        for part in quote.parts:
            table.add_row(f"  {part.name}", f"${part.usd_per_hour}: {part.basis}")
        table.add_row("  not in it", ", ".join(quote.excluded))
    table.add_section()
    for name, seconds in _durations(facts):
        table.add_row(name, f"{seconds:.1f} s")
    table.add_section()
    if status.progress and status.progress.first_loss is not None and status.progress.loss is not None:
        table.add_row(
            "loss", f"{status.progress.first_loss:.3f} at first, {status.progress.loss:.3f} at last"
        )
    if fetched is not None:
        report = fetched.report
        verdict = "sound" if report.sound else "unsound"
        table.add_row(
            "adapter", f"{fetched.archive.stat().st_size:,} bytes, {report.tensors} tensors: {verdict}"
        )
        table.add_row("  unpacked", str(fetched.directory.relative_to(PROJECT)))
    table.add_section()
    table.add_row("outcome", str(status.outcome))
    if machine := status.machine:
        table.add_row("machine", f"{machine.state} ({machine.instance_id})")
        confirmed = machine.confirmed_gone_at or machine.confirmed_stopped_at
        table.add_row(
            "  confirmed", f"{confirmed:%Y-%m-%d %H:%M:%S} UTC by the provider" if confirmed else "not yet"
        )
        table.add_row("  the provider's books", provider)
    table.add_row("cost", f"${status.cost_usd}")
    return table


def _durations(facts: Sequence[Fact]) -> list[tuple[str, float]]:
    at = {fact.kind: fact.at for fact in facts}
    return [
        (name, (at[last] - at[first]).total_seconds())
        for name, first, last in PHASES
        if first in at and last in at
    ]
