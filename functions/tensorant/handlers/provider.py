"""The routes that talk to a connection's provider or storage."""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.utilities.typing import LambdaContext

from tensorant import bootstrap
from tensorant.handlers.dataset_views import PreviewView
from tensorant.handlers.http import actor, resolver
from tensorant.handlers.review_views import ReviewView
from tensorant.handlers.views import AdapterView

app = resolver()

RUN = "/v1/organizations/<organization_id>/runs/<run_id>"


@app.get(f"{RUN}/review")
def review_run(organization_id: str, run_id: str) -> ReviewView:
    """The quotes of this moment, and what stands against launching. Reserves nothing."""
    return ReviewView.of(bootstrap.reviews().review(actor(app.current_event), organization_id, run_id))


@app.get(f"{RUN}/adapter")
def download_adapter(organization_id: str, run_id: str) -> AdapterView:
    """Where to get the verified archive, straight from the organization's storage."""
    return AdapterView.of(bootstrap.adapters().download(actor(app.current_event), organization_id, run_id))


@app.get("/v1/organizations/<organization_id>/dataset-versions/<version_id>/preview")
def preview_dataset_version(
    organization_id: str, version_id: str, rows: Annotated[int, Query(ge=1, le=100)] = 5
) -> PreviewView:
    """The first rows, straight from the organization's storage."""
    previews = bootstrap.dataset_previews()
    return PreviewView.of(previews.preview(actor(app.current_event), organization_id, version_id, rows=rows))


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
