"""`tensorant runs draft`: sends what was given, and chooses what was not named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import typer

from tensorant.contract import BaseModelRef
from tensorant_cli import draft_options as option
from tensorant_cli.errors import CliError
from tensorant_cli.options import AsJson, OrganizationId, ProjectId, given
from tensorant_cli.output import note, say, say_json
from tensorant_cli.session import Session

ALL_LINEAR = "all-linear"
DEFAULT_REVISION = "main"


@dataclass(frozen=True)
class Places:
    """Where a run belongs, as far as it was named."""

    organization_id: str | None
    project_id: str | None
    connection_id: str | None
    dataset_version_id: str | None


def draft(
    context: typer.Context,
    *,
    base_model: option.BaseModel = None,
    revision: option.Revision = None,
    instance_types: option.InstanceTypes,
    price_limit_usd_per_hour: option.PriceLimit,
    time_limit_minutes: option.TimeLimit,
    name: option.Name = None,
    organization_id: OrganizationId = None,
    project_id: ProjectId = None,
    connection_id: option.ConnectionId = None,
    dataset_version_id: option.DatasetVersionId = None,
    workspace_gib: option.WorkspaceGib = None,
    trial: option.Trial = False,
    rank: option.Rank = None,
    alpha: option.Alpha = None,
    dropout: option.Dropout = None,
    target_modules: option.TargetModules = None,
    use_rslora: option.UseRslora = False,
    use_dora: option.UseDora = False,
    epochs: option.Epochs = None,
    max_steps: option.MaxSteps = None,
    learning_rate: option.LearningRate = None,
    batch_size: option.BatchSize = None,
    max_tokens: option.MaxTokens = None,
    warmup_ratio: option.WarmupRatio = None,
    seed: option.Seed = None,
    as_json: AsJson = False,
) -> None:
    """Save a draft. Nothing is rented or reserved."""
    places = Places(organization_id, project_id, connection_id, dataset_version_id)
    scaling = given(use_rslora=use_rslora or None, use_dora=use_dora or None)
    matrices = given(rank=rank, alpha=alpha, dropout=dropout, target_modules=_targets(target_modules))
    length = given(epochs=epochs, max_steps=max_steps, max_tokens=max_tokens, batch_size=batch_size)
    course = given(learning_rate=learning_rate, warmup_ratio=warmup_ratio, seed=seed)
    limits = given(price_limit_usd_per_hour=price_limit_usd_per_hour, time_limit_minutes=time_limit_minutes)
    asked = given(name=name, instance_types=instance_types, workspace_gib=workspace_gib, trial=trial or None)
    parts = given(lora=(matrices | scaling) or None, training=(length | course) or None)
    with Session.of(context) as session:
        organization, chosen = _chosen(session, places, _base(session, base_model, revision))
        _save(session, organization, chosen | asked | limits | parts, as_json=as_json)


def _chosen(session: Session, places: Places, base: BaseModelRef) -> tuple[str, dict[str, Any]]:
    """The organization, and the fields that are chosen where they were not named."""
    organization = session.organization_id(places.organization_id)
    project = session.project_id(organization, places.project_id)
    connection = session.connection_id(
        organization, places.connection_id, kind="aws", option="--connection-id"
    )
    return organization, {
        "name": base.repository.rpartition("/")[2],
        "base_model": base.model_dump(),
        "project_id": project,
        "connection_id": connection,
        "dataset_version_id": session.dataset_version_id(organization, project, places.dataset_version_id),
    }


def _base(session: Session, repository: str | None, revision: str | None) -> BaseModelRef:
    """The one given, else local mode's own. Raises `CliError` where there is neither."""
    if repository:
        return BaseModelRef(repository=repository, revision=revision or DEFAULT_REVISION)
    local = session.profile.base_model
    if local is None or revision:
        raise CliError(
            "Not given: --base-model.", mend="Name the base model's hub repository: --base-model REPOSITORY."
        )
    note(f"Base model: {local.repository} at {local.revision} (local mode's).")
    return local


def _save(session: Session, organization_id: str, body: Mapping[str, Any], *, as_json: bool) -> None:
    run = session.client.draft_run(organization_id, body)
    session.state.remember(organization_id, "run", run.id)
    if as_json:
        say_json(run)
        return
    say(f"Drafted the run {run.name}: {run.id}")
    note("Next: tensorant runs review, then tensorant runs launch.")


def _targets(names: list[str] | None) -> str | list[str] | None:
    """PEFT takes `all-linear` as a word, module names as a list."""
    return ALL_LINEAR if names == [ALL_LINEAR] else names or None
