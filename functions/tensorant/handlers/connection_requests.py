"""What people send of connections. Every wrong field is told, all at once, with its mend; no secret is repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from tensorant.domain import aws_names
from tensorant.domain.connections import AwsSettings, ConnectionKind, CredentialKind, ManagedBy
from tensorant.handlers.credential_requests import KeyCredentials
from tensorant.handlers.request_rules import fault, rule
from tensorant.handlers.requests import Name, Request
from tensorant.handlers.storage_requests import RunPodConnection, RunPodCredentials, S3Connection, StoreKeys

Wanted = TypeVar("Wanted")

MAX_SUBNETS = 16


def parsed(
    kind: TypeAdapter[Wanted], body: object, *, now: datetime, private_storage: bool = False
) -> Wanted:
    """A request as of now, where the deployment allows private endpoints of storage, or not.

    Raises `RequestValidationError` with every fault, and without what was sent.
    """
    try:
        return kind.validate_python(body, context={"now": now, "private_storage": private_storage})
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
    raise RequestValidationError(faults)


Region = Annotated[str, rule(aws_names.region)]
ImageId = Annotated[str, rule(aws_names.image_id)]
SubnetId = Annotated[str, rule(aws_names.subnet_id)]
SecurityGroupId = Annotated[str, rule(aws_names.security_group_id)]
KeyName = Annotated[str, rule(aws_names.key_name)]
InstanceProfileArn = Annotated[str, rule(aws_names.instance_profile_arn)]
RoleArn = Annotated[str, rule(aws_names.role_arn)]


def _each_once(subnet_ids: list[str]) -> list[str]:
    twice = sorted({each for each in subnet_ids if subnet_ids.count(each) > 1})
    if twice:
        raise fault(
            "subnet_named_twice",
            f"{', '.join(twice)} is named more than once.",
            "Name each subnet once, in the order in which they are to be tried.",
        )
    return subnet_ids


SubnetIds = Annotated[list[SubnetId], Field(min_length=1, max_length=MAX_SUBNETS), AfterValidator(_each_once)]


# -- credentials -------------------------------------------------------------------------------------------


class RoleCredentials(Request):
    """A role of the customer's account; its external id is made by Tensorant and shown with the connection."""

    kind: Literal["role"]
    role_arn: RoleArn
    expires_at: ClassVar[None] = None

    def secret(self) -> dict[str, str]:
        """None: Tensorant makes its sessions itself."""
        return {}


class SameAccountCredentials(Request):
    """The deployment's own account."""

    kind: Literal["same_account"]
    expires_at: ClassVar[None] = None

    def secret(self) -> dict[str, str]:
        return {}


def _credential_kind(value: object) -> str:
    """An access key, unless another kind is named."""
    named = value.get("kind", "keys") if isinstance(value, Mapping) else getattr(value, "kind", "keys")
    return str(named)


AwsCredentials = Annotated[
    Annotated[KeyCredentials, Tag("keys")]
    | Annotated[RoleCredentials, Tag("role")]
    | Annotated[SameAccountCredentials, Tag("same_account")],
    Discriminator(_credential_kind),
]


# -- connections -------------------------------------------------------------------------------------------


class AwsPlace(Request):
    """Where machines are to be made."""

    region: Region
    image_id: ImageId
    subnet_ids: SubnetIds
    security_group_id: SecurityGroupId
    key_name: KeyName | None = None
    instance_profile_arn: InstanceProfileArn | None = None

    def settings(self) -> AwsSettings:
        return AwsSettings(
            region=self.region,
            image_id=self.image_id,
            subnet_ids=tuple(self.subnet_ids),
            security_group_id=self.security_group_id,
            key_name=self.key_name,
            instance_profile_arn=self.instance_profile_arn,
        )


class AwsConnection(AwsPlace):
    kind: Literal["aws"]
    name: Name
    managed_by: ManagedBy = ManagedBy.ORGANIZATION
    credentials: AwsCredentials

    def settings(self) -> AwsSettings:
        place = super().settings()
        role_arn = self.credentials.role_arn if isinstance(self.credentials, RoleCredentials) else None
        return replace(place, credentials=CredentialKind(self.credentials.kind), role_arn=role_arn)


CREATE_CONNECTION: TypeAdapter[AwsConnection | S3Connection | RunPodConnection] = TypeAdapter(
    Annotated[AwsConnection | S3Connection | RunPodConnection, Field(discriminator="kind")]
)
REPLACE_CREDENTIALS: TypeAdapter[KeyCredentials] = TypeAdapter(KeyCredentials)
REPLACE_STORE_CREDENTIALS: TypeAdapter[StoreKeys] = TypeAdapter(StoreKeys)
REPLACE_RUNPOD_CREDENTIALS: TypeAdapter[RunPodCredentials] = TypeAdapter(RunPodCredentials)


def credentials_of(connection_id: str) -> TypeAdapter[Any]:
    """What replaces a connection's credentials, by the kind that its id carries."""
    match connection_id.split("-"):
        case ["conn", ConnectionKind.S3, *_]:
            return REPLACE_STORE_CREDENTIALS
        case ["conn", ConnectionKind.RUNPOD_STORAGE, *_]:
            return REPLACE_RUNPOD_CREDENTIALS
    return REPLACE_CREDENTIALS


class ChangeConnection(Request):
    """What is left out stays; null takes the key pair or the instance profile away."""

    name: Name | None = None
    region: Region | None = None
    image_id: ImageId | None = None
    subnet_ids: SubnetIds | None = None
    security_group_id: SecurityGroupId | None = None
    key_name: KeyName | None = None
    instance_profile_arn: InstanceProfileArn | None = None
    role_arn: RoleArn | None = None

    @field_validator(
        "name", "region", "image_id", "subnet_ids", "security_group_id", "role_arn", mode="before"
    )
    @classmethod
    def _not_taken_away(cls, value: object) -> object:
        if value is None:
            raise fault(
                "not_removable",
                "A connection can't do without this.",
                "Send another value, or leave the field out to keep the present one.",
            )
        return value

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise fault(
                "nothing_to_change",
                "Nothing to change was sent.",
                f"Send one or more of {', '.join(type(self).model_fields)}.",
            )
        return self

    def changes(self) -> dict[str, Any]:
        """By the names of the connection's settings, and its own name."""
        sent = self.model_dump(include=self.model_fields_set)
        if "subnet_ids" in sent:
            sent["subnet_ids"] = tuple(sent["subnet_ids"])
        return sent
