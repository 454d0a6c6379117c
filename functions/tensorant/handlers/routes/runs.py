"""Runs: drafted, launched, watched. The provider function reviews them and hands out adapters."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query

from tensorant import bootstrap
from tensorant.handlers.http import actor
from tensorant.handlers.http import router as new_router
from tensorant.handlers.requests import CancelRun, CreateRun
from tensorant.handlers.views import FactView, Listed, LogPageView, RunStatusView, RunView

router = new_router()

RUNS = "/v1/organizations/<organization_id>/runs"


@router.post(RUNS)
def draft_run(organization_id: str, request: CreateRun) -> tuple[RunView, int]:
    """Save a draft. Nothing is rented or reserved."""
    run = bootstrap.drafts().create(actor(router.current_event), organization_id, request.draft())
    return RunView.of(run), HTTPStatus.CREATED


@router.get(RUNS)
def list_runs(organization_id: str) -> Listed[RunView]:
    """All runs of the organization, newest first."""
    runs = bootstrap.run_reader().list(actor(router.current_event), organization_id)
    return Listed(items=[RunView.of(each) for each in runs])


@router.get(f"{RUNS}/<run_id>")
def show_run(organization_id: str, run_id: str) -> RunStatusView:
    status = bootstrap.run_reader().show(actor(router.current_event), organization_id, run_id)
    return RunStatusView.of(status)


@router.post(f"{RUNS}/<run_id>/launch")
def launch_run(organization_id: str, run_id: str) -> tuple[RunView, int]:
    """Launch a draft: from here on it costs money. Repeating it changes nothing."""
    run = bootstrap.launches().launch(actor(router.current_event), organization_id, run_id)
    return RunView.of(run), HTTPStatus.ACCEPTED


@router.post(f"{RUNS}/<run_id>/cancel")
def cancel_run(organization_id: str, run_id: str, request: CancelRun) -> tuple[RunView, int]:
    """Cancel a run at any moment; `keep_output` decides whether its disk is kept, where there may be output."""
    run = bootstrap.cancellations().cancel(
        actor(router.current_event), organization_id, run_id, keep_output=request.keep_output
    )
    return RunView.of(run), HTTPStatus.ACCEPTED


@router.post(f"{RUNS}/<run_id>/discard")
def discard_output(organization_id: str, run_id: str) -> tuple[RunView, int]:
    """Give up what a run has left on its machine's disk, and release the machine."""
    run = bootstrap.cancellations().discard(actor(router.current_event), organization_id, run_id)
    return RunView.of(run), HTTPStatus.ACCEPTED


@router.post(f"{RUNS}/<run_id>/release")
def retry_release(organization_id: str, run_id: str) -> tuple[RunView, int]:
    """Retry GPU release: ask again for a release that is pending."""
    run = bootstrap.cancellations().retry_release(actor(router.current_event), organization_id, run_id)
    return RunView.of(run), HTTPStatus.ACCEPTED


@router.get(f"{RUNS}/<run_id>/events")
def list_run_events(organization_id: str, run_id: str) -> Listed[FactView]:
    """The run's timeline, oldest first."""
    facts = bootstrap.run_reader().events(actor(router.current_event), organization_id, run_id)
    return Listed(items=[FactView.of(each) for each in facts])


@router.get(f"{RUNS}/<run_id>/logs")
def read_run_log(
    organization_id: str,
    run_id: str,
    after: Annotated[str | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 500,
) -> LogPageView:
    """A page of the latest attempt's log; `after` is the `next` of the page before."""
    page = bootstrap.run_reader().log(
        actor(router.current_event), organization_id, run_id, after=after, limit=limit
    )
    return LogPageView.of(page)
