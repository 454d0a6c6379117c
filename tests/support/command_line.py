"""The command line at work against a scripted API. Answers are built from the API's own views."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import httpx
from typer.testing import CliRunner, Result

from tensorant.contract import JobSpec, VerificationReport
from tensorant.domain.connections import CheckItem, CheckVerdict, GpuType, S3Settings
from tensorant.domain.datasets.report import (
    Compression,
    DatasetFault,
    DatasetReport,
    Lengths,
    RowFormat,
)
from tensorant.domain.errors import FailureClass
from tensorant.domain.failures import Failure
from tensorant.domain.machines import MachineState, Seen
from tensorant.domain.quotes import Part
from tensorant.domain.runs import Outcome, Phase, Progress
from tensorant.handlers import connection_views, dataset_views, review_views, views
from tensorant.services.reviews import Problem
from tensorant_cli.main import app
from tensorant_cli.surroundings import Surroundings
from tests.support.archives import job_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pydantic import BaseModel

API = "https://api.example.com"
STORAGE = "https://storage.example.com"
TOKEN = "token-of-this-test"
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

ORG = "/v1/organizations/org-1"


class ScriptedApi:
    """Answers by method and path. Of several answers to one request each is given once, the last for good."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self._answers: defaultdict[str, list[httpx.Response | Exception]] = defaultdict(list)

    def answer(self, request: str, *bodies: BaseModel | object, status: int = 200) -> None:
        for body in bodies:
            self._answers[request].append(_response(body, status))

    def forget(self, request: str) -> None:
        """As if it had never been scripted."""
        del self._answers[request]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        answers = self._answers[f"{request.method} {request.url.path}"]
        assert answers, f"not expected: {request.method} {request.url}"
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(found, Exception):
            raise found
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)

    def calls(self) -> list[str]:
        return [f"{request.method} {request.url.path}" for request in self.requests]

    def sent(self, request: str) -> Any:
        """The body of the only such request."""
        [found] = [each for each in self.requests if f"{each.method} {each.url.path}" == request]
        return json.loads(found.content)


def _response(body: object, status: int) -> httpx.Response | Exception:
    if isinstance(body, httpx.Response | Exception):
        return body
    if isinstance(body, bytes):
        return httpx.Response(status, content=body)
    content = body.model_dump_json() if hasattr(body, "model_dump_json") else json.dumps(body)
    return httpx.Response(status, content=content, headers={"Content-Type": "application/json"})


@dataclass
class Terminal:
    """A person's terminal: a home, a directory, an environment, and what was waited for."""

    directory: Path
    api: ScriptedApi = field(default_factory=ScriptedApi)
    environ: dict[str, str] = field(
        default_factory=lambda: {
            "TENSORANT_URL": API,
            "TENSORANT_TOKEN": TOKEN,
            "TENSORANT_ORGANIZATION": "org-1",
        }
    )
    slept: list[float] = field(default_factory=list)
    sleep: Callable[[float], None] | None = None
    """Instead of remembering the seconds."""

    def run(self, *arguments: str, typed: str | None = None) -> Result:
        surroundings = Surroundings(
            environ=self.environ,
            home=self.directory / "home",
            directory=self.directory,
            transport=httpx.MockTransport(self.api),
            sleep=self.sleep or self.slept.append,
            now=lambda: NOON,
        )
        return CliRunner().invoke(app, list(arguments), input=typed, obj=surroundings)


def problem(**changes: Any) -> dict[str, Any]:
    """An error answer in the documented shape."""
    error = {
        "code": "instance_type_not_offered",
        "field": "instance_types[0]",
        "message": "p5.48xlarge can't be used: it has 8 GPUs.",
        "mend": "Choose one of g6.xlarge.",
        "request_id": "request-7",
        **changes,
    }
    return {"error": error, "also": []}


def listed(*items: BaseModel) -> dict[str, Any]:
    return {"items": [item.model_dump(mode="json") for item in items]}


def organization(**changes: Any) -> views.OrganizationView:
    return views.OrganizationView(**{"id": "org-1", "name": "Example", "created_at": NOON, **changes})


def me(*organization_ids: str) -> views.MeView:
    memberships = [views.MembershipView(organization_id=each, role="owner") for each in organization_ids]
    return views.MeView(subject="subject-1", platform_admin=False, memberships=memberships)


def connection(**changes: Any) -> connection_views.ConnectionView:
    fields = {
        "id": "conn-1",
        "name": "s3",
        "kind": "s3",
        "status": "connected",
        "settings": S3Settings(region="us-east-1", bucket="example-adapters"),
        "checks": (CheckItem(name="write", verdict=CheckVerdict.OK, seen="an object was written"),),
        "checked_at": NOON,
        "account_id": None,
        "created_at": NOON,
        **changes,
    }
    return connection_views.ConnectionView(**fields)


def catalog() -> connection_views.CatalogView:
    types = [
        GpuType(
            instance_type=instance_type,
            gpu=gpu,
            gpu_memory_mib=24576,
            vcpus=4,
            memory_mib=16384,
            zones=("us-east-1a",),
            usd_per_hour=Decimal(price) if price else None,
        )
        for instance_type, gpu, price in (
            ("g6e.xlarge", "L40S", None),
            ("g5.xlarge", "A10G", "1.0060"),
            ("g6.xlarge", "L4", "0.8048"),
        )
    ]
    return connection_views.CatalogView(
        types=tuple(types),
        excluded={"g5.12xlarge": "it has 4 GPUs"},
        disk_usd_per_gib_month=Decimal("0.08"),
        priced_at=NOON,
    )


def project(**changes: Any) -> views.ProjectView:
    fields = {"id": "proj-1", "name": "Assistant", "storage_connection_id": "conn-1", "created_at": NOON}
    return views.ProjectView(**{**fields, **changes})


def dataset(**changes: Any) -> dataset_views.DatasetView:
    fields = {
        "id": "data-1",
        "project_id": "proj-1",
        "name": "chats",
        "status": "valid",
        "sha256": "d" * 64,
        "rows": 270,
        "bytes": 181_000,
        "faults": (),
        "report": dataset_report(),
        "same_as": None,
        "trouble": None,
        "created_at": NOON,
        **changes,
    }
    return dataset_views.DatasetView(**fields)


def dataset_report(**changes: Any) -> DatasetReport:
    fields: Mapping[str, Any] = {
        "format": RowFormat.CHAT,
        "compression": Compression.GZIP,
        "uploaded_bytes": 45_000,
        "tokens": 36_000,
        "lengths": Lengths(half=130, nine_in_ten=155, ninety_nine_in_hundred=170, longest=179),
        "roles": {"system": 270, "user": 270, "assistant": 270},
        "tool_rows": 0,
        "duplicates": 2,
        "compared_rows": 270,
        "unused_fields": ("source",),
    }
    return DatasetReport(**{**fields, **changes})


def unread(status: str) -> dataset_views.DatasetView:
    """A dataset version that nobody has judged yet."""
    return dataset(status=status, sha256=None, rows=None, bytes=None, report=None)


def fault(**changes: Any) -> DatasetFault:
    fields: Mapping[str, Any] = {
        "line": 3,
        "field": "messages[1].role",
        "message": "The role robot is not known.",
        "mend": "Use system, user, assistant or tool.",
    }
    return DatasetFault(**{**fields, **changes})


def upload() -> dataset_views.UploadView:
    return dataset_views.UploadView(
        dataset_version=unread("uploading"),
        upload_url=f"{STORAGE}/staging/data-1?X-Amz-Signature=c0ffee",
        expires_in_seconds=3600,
    )


def run(spec: JobSpec | None = None, **changes: Any) -> views.RunView:
    fields = {
        "id": "run-1",
        "name": "First",
        "project_id": "proj-1",
        "connection_id": "conn-1",
        "dataset_version_id": "data-1",
        "instance_types": ("g6.xlarge",),
        "price_limit_usd_per_hour": Decimal("1.50"),
        "time_limit_minutes": 90,
        "trial": False,
        "spec": spec or job_spec(),
        "created_at": NOON,
        "launched_at": NOON,
        "deadline_at": None,
        "ended_at": None,
        "cancelled_at": None,
        "outcome": None,
        "failure": None,
        **changes,
    }
    return views.RunView(**fields)


def quote(**changes: Any) -> views.QuoteView:
    fields = {
        "usd_per_hour": Decimal("0.8138"),
        "compute_usd_per_hour": Decimal("0.8048"),
        "disk_usd_per_hour": Decimal("0.0090"),
        "disk_gib": 82,
        "instance_type": "g6.xlarge",
        "priced_at": NOON,
        "priced_seconds_ago": 3,
        "parts": (
            Part(name="compute", usd_per_hour=Decimal("0.8048"), basis="g6.xlarge, Linux, on demand"),
            Part(name="disk", usd_per_hour=Decimal("0.0090"), basis="82 GiB of gp3, over 730 hours"),
        ),
        "excluded": ("NAT gateway", "taxes"),
        **changes,
    }
    return views.QuoteView(**fields)


def quota(**changes: Any) -> review_views.QuotaView:
    fields = {
        "family": "G and VT",
        "code": "L-DB2E81BA",
        "needed": 4,
        "limit": 64,
        "in_use": 8,
        "headroom": 56,
        "suffices": True,
        "unknown_because": "",
        **changes,
    }
    return review_views.QuotaView(**fields)


def obstacle(**changes: Any) -> Problem:
    fields = {
        "code": "price_above_limit",
        "message": "g6.xlarge costs $1.6000 an hour, above the limit of $1.50.",
        "mend": "Raise the run's price limit or choose a cheaper GPU type.",
        "field": "price_limit_usd_per_hour",
        "blocking": True,
        **changes,
    }
    return Problem(**fields)


def review(*problems: Problem, **changes: Any) -> review_views.ReviewView:
    """Of a run that accepts one type, unless `quotes` says otherwise."""
    within_limit = not any(each.blocking for each in problems)
    first = changes.get("quote", quote())
    fields = {
        "run": run(launched_at=None),
        "quote": first,
        "within_limit": within_limit,
        "quotes": [reviewed(first, within_limit=within_limit)],
        "most_usd": Decimal("1.2207"),
        "quota": quota(),
        "problems": problems,
        **changes,
    }
    return review_views.ReviewView(**fields)


def reviewed(of: views.QuoteView, *, within_limit: bool) -> review_views.ReviewedQuoteView:
    return review_views.ReviewedQuoteView(**of.model_dump(), within_limit=within_limit)


def machine(state: str, **changes: Any) -> views.MachineView:
    fields = {
        "attempt": 1,
        "state": MachineState(state),
        "seen": Seen.RUNNING,
        "instance_id": "i-0123456789abcdef0",
        "instance_type": "g6.xlarge",
        "subnet_id": "subnet-0123456789abcdef0",
        "asked_at": NOON,
        "started_at": NOON,
        "disposition": None,
        "trouble": None,
        "confirmed_stopped_at": None,
        "confirmed_gone_at": None,
        "reason": "",
        "cause": None,
        "volume_id": None,
        "deleted_on_termination": None,
        "left_over": None,
        **changes,
    }
    return views.MachineView(**fields)


def retirement() -> views.FactView:
    """A warning as a run's status carries it."""
    return views.FactView(
        at=NOON,
        kind="machine_warning",
        source="provider",
        attempt=1,
        message="EC2 will stop the machine. Let the run finish before.",
    )


def progress(phase: str, step: int | None = None, loss: float | None = None) -> Progress:
    return Progress(
        run_id="run-1",
        attempt=1,
        phase=Phase(phase),
        step=step,
        steps_total=40 if step is not None else None,
        first_loss=4.9,
        loss=loss,
        seconds_left=None if step is None else 200.0 - 5 * step,
    )


def status(phase: str, **changes: Any) -> views.RunStatusView:
    """A launched run in this phase; `outcome` is set on run and status alike."""
    outcome = Outcome(changes["outcome"]) if changes.get("outcome") else None
    fields = {
        "run": run(outcome=outcome, failure=changes.pop("failure", None)),
        "phase": Phase(phase),
        "machine": None,
        "quote": quote(),
        "cost_usd": Decimal("0.0123"),
        "progress": None,
        "report": None,
        "warnings": [],
        **changes,
        "outcome": outcome,
    }
    return views.RunStatusView(**fields)


def trainer_killed() -> Failure:
    return Failure(
        failure_class=FailureClass.LOST,
        code="trainer_exited",
        message="The trainer ended with exit code 137.",
        mend="Recover its adapter or discard it.",
    )


def adapter(report: VerificationReport) -> views.AdapterView:
    return views.AdapterView(
        download_url=f"{STORAGE}/adapters/adapter.zip?X-Amz-Signature=c0ffee",
        expires_in_seconds=900,
        key="runs/run-1/attempt-1/adapter.zip",
        report=report,
    )


def squeezed(text: str) -> list[str]:
    """Lines with single spaces: how wide a column is says nothing."""
    return [" ".join(line.split()) for line in text.splitlines()]
