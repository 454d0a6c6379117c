"""What users send. Unknown fields are refused, so that a misspelt one is not silently ignored."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationInfo, field_validator

from tensorant.contract import BaseModelRef, LoraSpec, TrainingSpec
from tensorant.domain.connections import AwsSettings, S3Settings
from tensorant.domain.runs import Draft

Name = Annotated[str, Field(min_length=1, max_length=100)]
Identifier = Annotated[str, Field(pattern=r"^[\w-]{1,64}$")]
CONNECTION_REGION = r"^(us|eu|ap|sa|ca|me|af|il|mx)-[a-z]+-\d+$"


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


class CreateOrganization(Request):
    name: Name
    owner: Annotated[str, Field(min_length=1, max_length=256, description="The owner's token subject.")]


class AwsCredentials(Request):
    access_key_id: Annotated[str, Field(pattern=r"^[A-Z0-9]{16,128}$")]
    secret_access_key: Annotated[SecretStr, Field(min_length=16, max_length=256)]
    session_token: Annotated[SecretStr, Field(min_length=16, max_length=4096)] | None = None

    def secret(self) -> dict[str, str]:
        secret = {
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key.get_secret_value(),
        }
        if self.session_token is not None:
            secret["session_token"] = self.session_token.get_secret_value()
        return secret


class AwsConnection(Request):
    kind: Literal["aws"]
    name: Name
    region: Annotated[str, Field(pattern=CONNECTION_REGION)]
    image_id: Annotated[str, Field(pattern=r"^ami-[0-9a-f]{8,17}$")]
    subnet_ids: Annotated[
        list[Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")]], Field(min_length=1, max_length=16)
    ]
    security_group_id: Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$")]
    key_name: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    instance_profile_arn: (
        Annotated[str, Field(pattern=r"^arn:aws:iam::\d{12}:instance-profile/.+$")] | None
    ) = None
    credentials: AwsCredentials

    def settings(self) -> AwsSettings:
        return AwsSettings(
            region=self.region,
            image_id=self.image_id,
            subnet_ids=tuple(self.subnet_ids),
            security_group_id=self.security_group_id,
            key_name=self.key_name,
            instance_profile_arn=self.instance_profile_arn,
        )


class S3Connection(Request):
    kind: Literal["s3"]
    name: Name
    region: Annotated[str, Field(pattern=CONNECTION_REGION)]
    bucket: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
    prefix: Annotated[str, Field(max_length=512)] = ""
    addressing_style: Literal["virtual", "path"] = "virtual"
    credentials: AwsCredentials

    def settings(self) -> S3Settings:
        return S3Settings(
            region=self.region, bucket=self.bucket, prefix=self.prefix, addressing_style=self.addressing_style
        )


CreateConnection = Annotated[AwsConnection | S3Connection, Field(discriminator="kind")]


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
