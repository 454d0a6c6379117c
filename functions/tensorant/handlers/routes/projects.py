"""Projects and dataset versions."""

from __future__ import annotations

from http import HTTPStatus

from tensorant import bootstrap
from tensorant.handlers.dataset_views import DatasetView, UploadView
from tensorant.handlers.http import actor
from tensorant.handlers.http import router as new_router
from tensorant.handlers.requests import CreateDatasetVersion, CreateProject
from tensorant.handlers.views import Listed, ProjectView

router = new_router()

PROJECTS = "/v1/organizations/<organization_id>/projects"
VERSIONS = "/v1/organizations/<organization_id>/dataset-versions"


@router.post(PROJECTS)
def create_project(organization_id: str, request: CreateProject) -> tuple[ProjectView, int]:
    project = bootstrap.projects().create(
        actor(router.current_event),
        organization_id,
        name=request.name,
        storage_connection_id=request.storage_connection_id,
    )
    return ProjectView.of(project), HTTPStatus.CREATED


@router.get(PROJECTS)
def list_projects(organization_id: str) -> Listed[ProjectView]:
    projects = bootstrap.projects().list(actor(router.current_event), organization_id)
    return Listed(items=[ProjectView.of(each) for each in projects])


@router.get(f"{PROJECTS}/<project_id>")
def show_project(organization_id: str, project_id: str) -> ProjectView:
    return ProjectView.of(bootstrap.projects().show(actor(router.current_event), organization_id, project_id))


@router.post(f"{PROJECTS}/<project_id>/dataset-versions")
def create_dataset_version(
    organization_id: str, project_id: str, request: CreateDatasetVersion
) -> tuple[UploadView, int]:
    """Open a dataset version: PUT its file to the returned URL, then complete it."""
    upload = bootstrap.datasets().create(
        actor(router.current_event), organization_id, project_id, name=request.name
    )
    return UploadView.of(upload), HTTPStatus.CREATED


@router.get(f"{PROJECTS}/<project_id>/dataset-versions")
def list_dataset_versions(organization_id: str, project_id: str) -> Listed[DatasetView]:
    versions = bootstrap.datasets().list(actor(router.current_event), organization_id, project_id)
    return Listed(items=[DatasetView.of(each) for each in versions])


@router.get(f"{VERSIONS}/<version_id>")
def show_dataset_version(organization_id: str, version_id: str) -> DatasetView:
    return DatasetView.of(bootstrap.datasets().show(actor(router.current_event), organization_id, version_id))


@router.post(f"{VERSIONS}/<version_id>/complete")
def complete_dataset_version(organization_id: str, version_id: str) -> tuple[DatasetView, int]:
    """The file is uploaded: validate it. Read the version to see the result."""
    dataset = bootstrap.datasets().complete(actor(router.current_event), organization_id, version_id)
    return DatasetView.of(dataset), HTTPStatus.ACCEPTED
