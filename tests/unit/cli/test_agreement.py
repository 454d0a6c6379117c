"""The command line reads what the API answers: its models against the API's views, its paths against the routes."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tensorant.domain.connections import CheckItem, GpuType, Notice
from tensorant.domain.datasets.report import DatasetFault, DatasetReport, Lengths
from tensorant.domain.failures import Failure
from tensorant.domain.quotes import Part
from tensorant.domain.runs import Progress
from tensorant.handlers import connection_views, dataset_views, review_views, views
from tensorant.handlers.routes.connector import ConnectorView, PolicyView
from tensorant.services.reviews import Problem
from tensorant_cli import models

if TYPE_CHECKING:
    from pydantic import BaseModel

FUNCTIONS = Path(__file__).parents[3] / "functions" / "tensorant" / "handlers"
CLIENT = Path(models.__file__).with_name("client.py")

PAIRS = [
    (models.Organization, views.OrganizationView),
    (models.Membership, views.MembershipView),
    (models.Me, views.MeView),
    (models.Connection, connection_views.ConnectionView),
    (models.Catalog, connection_views.CatalogView),
    (models.Project, views.ProjectView),
    (models.DatasetVersion, dataset_views.DatasetView),
    (models.Upload, dataset_views.UploadView),
    (models.DatasetPreview, dataset_views.PreviewView),
    (models.Quote, views.QuoteView),
    (models.Machine, views.MachineView),
    (models.Run, views.RunView),
    (models.RunStatus, views.RunStatusView),
    (models.Review, review_views.ReviewView),
    (models.ReviewedQuote, review_views.ReviewedQuoteView),
    (models.Quota, review_views.QuotaView),
    (models.Policy, PolicyView),
    (models.Connector, ConnectorView),
    (models.Fact, views.FactView),
    (models.LogLine, views.LogLineView),
    (models.LogPage, views.LogPageView),
    (models.AdapterDownload, views.AdapterView),
]

PARTS = [
    (models.CheckItem, CheckItem),
    (models.Notice, Notice),
    (models.Part, Part),
    (models.Obstacle, Problem),
    (models.GpuType, GpuType),
    (models.DatasetFault, DatasetFault),
    (models.DatasetReport, DatasetReport),
    (models.DatasetLengths, Lengths),
    (models.Failure, Failure),
    (models.Progress, Progress),
]
"""Entities that the API's views carry as they are."""


@pytest.mark.parametrize(("model", "view"), PAIRS)
def test_every_field_that_is_read_is_answered(model: type[BaseModel], view: type[BaseModel]) -> None:
    assert set(model.model_fields) <= set(view.model_fields)


@pytest.mark.parametrize(("model", "entity"), PARTS)
def test_every_field_of_a_part_is_answered(model: type[BaseModel], entity: type[Any]) -> None:
    assert set(model.model_fields) <= {field.name for field in fields(entity)}


def test_the_client_calls_every_route_and_no_other() -> None:
    assert called_shapes() == offered_shapes()


def offered_shapes() -> set[str]:
    """Paths of the user API, ids as `*`."""
    text = "".join(path.read_text() for path in FUNCTIONS.rglob("*.py") if path.name != "agent.py")
    bases = dict(re.findall(r'^([A-Z]+) = "(/v1[^"]*)"', text, re.MULTILINE))
    decorated = re.findall(r'@\w+\.(?:get|post|put|patch|delete)\((?:f?"([^"]*)"|([A-Z]+))\)', text)
    paths = [path or bases[name] for path, name in decorated]
    whole = [re.sub(r"\{([A-Z]+)\}", lambda found: bases[found[1]], path) for path in paths]
    return {re.sub(r"<\w+>", "*", path) for path in whole}


def called_shapes() -> set[str]:
    text = CLIENT.read_text()
    shapes = set(re.findall(r'"(/v1/(?:me|organizations))"', text))
    for arguments in re.findall(r"_path\(([^()]*)\)", text.partition("# -- plumbing")[0]):
        parts = [part.strip() for part in arguments.split(",")]
        segments = [part.strip('"') if part.startswith('"') else "*" for part in parts]
        shapes.add("/".join(("/v1/organizations", *segments)))
    return shapes
