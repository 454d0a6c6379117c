"""The routes that talk to a connection's provider or storage."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from tensorant import bootstrap
from tensorant.handlers.http import actor, resolver
from tensorant.handlers.views import AdapterView, ReviewView

app = resolver()

RUN = "/v1/organizations/<organization_id>/runs/<run_id>"


@app.get(f"{RUN}/review")
def review_run(organization_id: str, run_id: str) -> ReviewView:
    """The quote of this moment. Reserves nothing."""
    return ReviewView.of(bootstrap.reviews().review(actor(app.current_event), organization_id, run_id))


@app.get(f"{RUN}/adapter")
def download_adapter(organization_id: str, run_id: str) -> AdapterView:
    """Where to get the verified archive, straight from the organization's storage."""
    return AdapterView.of(bootstrap.adapters().download(actor(app.current_event), organization_id, run_id))


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
