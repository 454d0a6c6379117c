"""What users send. Unknown fields are refused, so that a misspelt one is not silently ignored."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from tensorant.contract import BaseModelRef, LoraSpec, TrainingSpec
from tensorant.domain.runs import Draft

Name = Annotated[str, Field(min_length=1, max_length=100)]
Identifier = Annotated[str, Field(pattern=r"^[\w-]{1,64}$")]


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True, hide_input_in_errors=True)


class CreateOrganization(Request):
    name: Name
    owner: Annotated[str, Field(min_length=1, max_length=256, description="The owner's token subject.")]


class CreateProject(Request):
    name: Name
    storage_connection_id: Identifier


class CreateDatasetVersion(Request):
    name: Name


class CreateRun(Request):
    name: Name
    project_id: Identifier
    connection_id: Identifier
    dataset_version_id: Identifier
    base_model: BaseModelRef
    instance_types: Annotated[
        list[Annotated[str, Field(pattern=r"^[a-z0-9-]+\.[a-z0-9-]+$")]], Field(min_length=1, max_length=10)
    ]
    price_limit_usd_per_hour: Annotated[Decimal, Field(gt=0, le=1000, decimal_places=4)]
    time_limit_minutes: Annotated[int, Field(ge=1, le=72 * 60)]
    workspace_gib: Annotated[int, Field(ge=10, le=1000)] = 50
    trial: bool = False
    lora: LoraSpec = LoraSpec()
    training: TrainingSpec = TrainingSpec()

    @field_validator("instance_types")
    @classmethod
    def _no_type_twice(cls, value: list[str]) -> list[str]:
        if len(set(value)) < len(value):
            raise ValueError("a type is named twice")
        return value

    @field_validator("base_model", "lora", "training", mode="before")
    @classmethod
    def _no_unknown_fields(cls, value: object, info: ValidationInfo) -> object:
        """The wire's models tolerate unknown fields when read; a person's request must not hold any."""
        kinds: dict[str, type[BaseModel]] = {
            "base_model": BaseModelRef,
            "lora": LoraSpec,
            "training": TrainingSpec,
        }
        known = set(kinds[info.field_name or ""].model_fields)
        unknown = set(value) - known if isinstance(value, dict) else set()
        if unknown:
            raise ValueError(
                f"unknown field {', '.join(sorted(unknown))}; known are {', '.join(sorted(known))}"
            )
        return value

    def draft(self) -> Draft:
        return Draft(
            name=self.name,
            project_id=self.project_id,
            connection_id=self.connection_id,
            dataset_version_id=self.dataset_version_id,
            base=self.base_model,
            lora=self.lora,
            training=self.training,
            instance_types=tuple(self.instance_types),
            price_limit_usd_per_hour=self.price_limit_usd_per_hour,
            time_limit_minutes=self.time_limit_minutes,
            workspace_gib=self.workspace_gib,
            trial=self.trial,
        )


class CancelRun(Request):
    keep_output: bool | None = None
