"""The HTTPS API, one method a route."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from tensorant_cli import http
from tensorant_cli.errors import ApiError, CliError, Problem
from tensorant_cli.models import (
    AdapterDownload,
    Catalog,
    Connection,
    Connector,
    DatasetPreview,
    DatasetVersion,
    Fact,
    Listed,
    LogPage,
    Me,
    Organization,
    Policy,
    Project,
    Review,
    Run,
    RunStatus,
    Upload,
)

Answer = TypeVar("Answer", bound=BaseModel)

MENDS = {
    401: "Sign in again: tensorant login. In local mode, start it again: tensorant local up.",
    403: "Ask an owner of the organization, or an administrator of this deployment.",
    404: "Check the API's address.",
    429: "Wait a moment and repeat the command.",
}
"""For answers that API Gateway gives without asking Tensorant; they carry no mend of their own."""


class ApiClient:
    """A person's view of the API; a context manager.

    Reading is repeated after faults that pass; changing never is. Every method raises `ApiError` with the
    API's own words, or `Unreachable`.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: httpx.BaseTransport | None = None,
        renew: http.Renew | None = None,
        sleep: http.Sleep = time.sleep,
    ) -> None:
        self.url = http.require_safe(url)
        self._client = http.connect(self.url, auth=http.Bearer(token, renew), transport=transport)
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    # -- organizations -----------------------------------------------------------------------------------

    def me(self) -> Me:
        return self._get("/v1/me", Me)

    def create_organization(self, *, name: str, owner: str) -> Organization:
        """`owner` is the owner's token subject."""
        return self._post("/v1/organizations", Organization, {"name": name, "owner": owner})

    # -- connections -------------------------------------------------------------------------------------

    def create_connection(self, organization_id: str, body: Mapping[str, Any]) -> Connection:
        return self._post(_path(organization_id, "connections"), Connection, body)

    def connections(self, organization_id: str) -> list[Connection]:
        return self._get(_path(organization_id, "connections"), Listed[Connection]).items

    def connection(self, organization_id: str, connection_id: str) -> Connection:
        return self._get(_path(organization_id, "connections", connection_id), Connection)

    def replace_credentials(
        self, organization_id: str, connection_id: str, credentials: Mapping[str, str]
    ) -> Connection:
        """The new credentials are checked at once; read the connection to see the result."""
        return self._put(
            _path(organization_id, "connections", connection_id, "credentials"), Connection, credentials
        )

    def edit_connection(
        self, organization_id: str, connection_id: str, changes: Mapping[str, Any]
    ) -> Connection:
        """What `changes` does not name stays. The connection is checked at once."""
        return self._patch(_path(organization_id, "connections", connection_id), Connection, changes)

    def remove_connection(self, organization_id: str, connection_id: str) -> Connection:
        """Refused while a run or a kept disk needs it."""
        return self._delete(_path(organization_id, "connections", connection_id), Connection)

    def check_connection(self, organization_id: str, connection_id: str) -> Connection:
        return self._post(_path(organization_id, "connections", connection_id, "check"), Connection)

    def gpus(self, organization_id: str, connection_id: str) -> Catalog:
        return self._get(_path(organization_id, "connections", connection_id, "gpus"), Catalog)

    def policy(self, organization_id: str, connection_id: str, wanted: dict[str, str | int]) -> Policy:
        """`wanted` may hold quota, checks, profile_role_arn and account_id."""
        return self._get(_path(organization_id, "connections", connection_id, "policy"), Policy, wanted)

    def connector(self, organization_id: str, connection_id: str, wanted: dict[str, str | int]) -> Connector:
        return self._get(_path(organization_id, "connections", connection_id, "connector"), Connector, wanted)

    def policy_for(self, organization_id: str, settings: Mapping[str, Any]) -> Policy:
        """For a connection that is still to be made."""
        return self._post(_path(organization_id, "aws-policy"), Policy, settings)

    # -- projects and dataset versions -------------------------------------------------------------------

    def create_project(self, organization_id: str, *, name: str, storage_connection_id: str) -> Project:
        body = {"name": name, "storage_connection_id": storage_connection_id}
        return self._post(_path(organization_id, "projects"), Project, body)

    def projects(self, organization_id: str) -> list[Project]:
        return self._get(_path(organization_id, "projects"), Listed[Project]).items

    def project(self, organization_id: str, project_id: str) -> Project:
        return self._get(_path(organization_id, "projects", project_id), Project)

    def create_dataset_version(self, organization_id: str, project_id: str, *, name: str) -> Upload:
        path = _path(organization_id, "projects", project_id, "dataset-versions")
        return self._post(path, Upload, {"name": name})

    def dataset_versions(self, organization_id: str, project_id: str) -> list[DatasetVersion]:
        path = _path(organization_id, "projects", project_id, "dataset-versions")
        return self._get(path, Listed[DatasetVersion]).items

    def dataset_version(self, organization_id: str, version_id: str) -> DatasetVersion:
        return self._get(_path(organization_id, "dataset-versions", version_id), DatasetVersion)

    def preview_dataset_version(self, organization_id: str, version_id: str, *, rows: int) -> DatasetPreview:
        path = _path(organization_id, "dataset-versions", version_id, "preview")
        return self._get(path, DatasetPreview, {"rows": rows})

    def complete_dataset_version(self, organization_id: str, version_id: str) -> DatasetVersion:
        return self._post(_path(organization_id, "dataset-versions", version_id, "complete"), DatasetVersion)

    # -- runs --------------------------------------------------------------------------------------------

    def draft_run(self, organization_id: str, body: Mapping[str, Any]) -> Run:
        return self._post(_path(organization_id, "runs"), Run, body)

    def runs(self, organization_id: str) -> list[Run]:
        return self._get(_path(organization_id, "runs"), Listed[Run]).items

    def run(self, organization_id: str, run_id: str) -> RunStatus:
        return self._get(_path(organization_id, "runs", run_id), RunStatus)

    def review(self, organization_id: str, run_id: str) -> Review:
        return self._get(_path(organization_id, "runs", run_id, "review"), Review)

    def launch(self, organization_id: str, run_id: str) -> Run:
        """From here on it costs money. Safe to repeat: a run is launched once."""
        return self._post(_path(organization_id, "runs", run_id, "launch"), Run)

    def cancel(self, organization_id: str, run_id: str, *, keep_output: bool | None) -> Run:
        """`keep_output` must be said where there may be output."""
        body = {"keep_output": keep_output}
        return self._post(_path(organization_id, "runs", run_id, "cancel"), Run, body)

    def discard(self, organization_id: str, run_id: str) -> Run:
        """Give up what the run has left on its machine's disk, and release the machine."""
        return self._post(_path(organization_id, "runs", run_id, "discard"), Run)

    def release(self, organization_id: str, run_id: str) -> Run:
        """Ask again for a release that is pending."""
        return self._post(_path(organization_id, "runs", run_id, "release"), Run)

    def events(self, organization_id: str, run_id: str) -> list[Fact]:
        return self._get(_path(organization_id, "runs", run_id, "events"), Listed[Fact]).items

    def logs(
        self, organization_id: str, run_id: str, *, after: str | None = None, limit: int = 500
    ) -> LogPage:
        """A page of the latest attempt's log; `after` is the `next` of the page before."""
        params: dict[str, str | int] = {"limit": limit, **({"after": after} if after else {})}
        return self._get(_path(organization_id, "runs", run_id, "logs"), LogPage, params)

    def adapter(self, organization_id: str, run_id: str) -> AdapterDownload:
        """Where to get the verified archive; the address is a right to read it, so it is not shown."""
        return self._get(_path(organization_id, "runs", run_id, "adapter"), AdapterDownload)

    # -- plumbing ----------------------------------------------------------------------------------------

    def _get(self, path: str, kind: type[Answer], params: dict[str, str | int] | None = None) -> Answer:
        return _parsed(http.get(self._client, path, params=params or {}, sleep=self._sleep), kind)

    def _post(self, path: str, kind: type[Answer], body: Mapping[str, Any] | None = None) -> Answer:
        return _parsed(http.send(self._client, "POST", path, body=body), kind)

    def _put(self, path: str, kind: type[Answer], body: Mapping[str, Any]) -> Answer:
        return _parsed(http.send(self._client, "PUT", path, body=body), kind)

    def _patch(self, path: str, kind: type[Answer], body: Mapping[str, Any]) -> Answer:
        return _parsed(http.send(self._client, "PATCH", path, body=body), kind)

    def _delete(self, path: str, kind: type[Answer]) -> Answer:
        return _parsed(http.send(self._client, "DELETE", path, body=None), kind)


def _path(organization_id: str, *parts: str) -> str:
    """Ids are single segments: one with a slash is a typing error, not another route."""
    for part in (organization_id, *parts):
        if not part.replace("-", "").replace("_", "").isalnum():
            raise CliError(f"{part!r} is not an id.", mend="Ids look like run-0123456789abcdef.")
    return "/".join(("/v1/organizations", organization_id, *parts))


def _parsed(response: httpx.Response, kind: type[Answer]) -> Answer:
    if not response.is_success:
        raise _error(response)
    try:
        return kind.model_validate_json(response.content)
    except ValidationError as error:
        raise CliError(
            f"{http.origin(response.url)} answered something else than Tensorant's API does.",
            mend="Check the API's address, and that this command line is not older than the deployment.",
        ) from error


def _error(response: httpx.Response) -> ApiError:
    """From the documented shape, or from what stands in its place when Tensorant was not reached."""
    try:
        body = json.loads(response.content)
        problem = Problem.model_validate(body["error"])
        return ApiError(
            response.status_code, problem, [Problem.model_validate(each) for each in body.get("also", [])]
        )
    except (ValueError, KeyError, TypeError):
        return ApiError(response.status_code, _gateway_problem(response))


def _gateway_problem(response: httpx.Response) -> Problem:
    status = response.status_code
    return Problem(
        code=f"http_{status}",
        message=f"{http.origin(response.url)} answered {status} {response.reason_phrase}.",
        mend=MENDS.get(status, "Repeat the command; if it stays, tell your administrator the request id."),
        request_id=response.headers.get("apigw-requestid"),
    )
