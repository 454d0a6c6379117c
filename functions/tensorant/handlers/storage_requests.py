"""What people send of storage: AWS S3, stores that speak its API, and RunPod's network volumes."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Field,
    SecretStr,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)

from tensorant.domain import aws_names, endpoints, storages
from tensorant.domain.connections import ManagedBy, S3Settings
from tensorant.domain.errors import Invalid
from tensorant.domain.storages import RunPodStorageSettings
from tensorant.handlers.credential_requests import KeyCredentials, only_keys
from tensorant.handlers.request_rules import fault, rule, told
from tensorant.handlers.requests import Name, Request

Bucket = Annotated[str, rule(storages.bucket)]
Prefix = Annotated[str, rule(storages.prefix)]


class StoreKeys(KeyCredentials):
    """An access key of a store that is not AWS's: each vendor has a form of its own."""

    access_key_id: Annotated[str, Field(pattern=r"^[!-~]{3,256}$")]
    secret_access_key: Annotated[SecretStr, Field(min_length=8, max_length=512)]


def _of_the_store(value: object, as_of_aws: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """AWS's own keys are looked at closely; of others only their store knows the form."""
    if info.data.get("endpoint_url", "") is None:
        return as_of_aws(value)
    return StoreKeys.model_validate(value, context=info.context)


class S3Connection(Request):
    """`endpoint_url` null: AWS S3. A store's path style is the default where there is an endpoint."""

    kind: Literal["s3"]
    name: Name
    endpoint_url: Annotated[str, Field(max_length=512)] | None = None
    region: str
    bucket: Bucket
    prefix: Prefix = ""
    addressing_style: Annotated[Literal["virtual", "path"] | None, Field(validate_default=True)] = None
    managed_by: ManagedBy = ManagedBy.ORGANIZATION
    credentials: Annotated[KeyCredentials, WrapValidator(_of_the_store)]

    @field_validator("endpoint_url")
    @classmethod
    def _reachable(cls, value: str | None, info: ValidationInfo) -> str | None:
        """Whether private addresses are taken is the deployment's choice, and comes with the context."""
        if value is None:
            return None
        private_allowed = bool((info.context or {}).get("private_storage"))
        try:
            return endpoints.endpoint(value, private_allowed=private_allowed)
        except Invalid as error:
            raise told(error) from None

    @field_validator("region")
    @classmethod
    def _of_aws_or_the_store(cls, value: str, info: ValidationInfo) -> str:
        of_aws = info.data.get("endpoint_url", "") is None
        try:
            return aws_names.region(value) if of_aws else storages.store_region(value)
        except Invalid as error:
            raise told(error) from None

    @field_validator("addressing_style")
    @classmethod
    def _usual(cls, value: str | None, info: ValidationInfo) -> str:
        """Few stores besides AWS have a host name, and a certificate, for each bucket."""
        return value or ("path" if info.data.get("endpoint_url") else "virtual")

    def settings(self) -> S3Settings:
        return S3Settings(
            region=self.region,
            bucket=self.bucket,
            prefix=self.prefix,
            endpoint_url=self.endpoint_url,
            addressing_style=self.addressing_style or "virtual",
        )


class RunPodCredentials(Request):
    """A key of RunPod's S3 API, which is not a RunPod API key."""

    kind: Annotated[Literal["keys"], BeforeValidator(only_keys)] = "keys"
    access_key_id: Annotated[str, rule(storages.runpod_access_key_id)]
    secret_access_key: Annotated[SecretStr, Field(min_length=8, max_length=256)]
    expires_at: ClassVar[None] = None

    @field_validator("secret_access_key")
    @classmethod
    def _of_the_s3_api(cls, value: SecretStr) -> SecretStr:
        if not value.get_secret_value().startswith("rps_"):
            raise fault(
                "secret_of_other_api",
                "The secret of RunPod's S3 API begins with rps_.",
                "Make an S3 API key under Settings → S3 API keys in RunPod's console, and send its secret; a RunPod "
                "API key (rpa_…) does not open storage.",
            )
        return value

    def secret(self) -> dict[str, str]:
        return {
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key.get_secret_value(),
        }


class RunPodConnection(Request):
    """A network volume; its endpoint follows from the datacenter."""

    kind: Literal["runpod_storage"]
    name: Name
    datacenter: Annotated[str, rule(storages.datacenter)]
    volume_id: Annotated[str, rule(storages.volume_id)]
    prefix: Prefix = ""
    managed_by: ManagedBy = ManagedBy.ORGANIZATION
    credentials: RunPodCredentials

    def settings(self) -> RunPodStorageSettings:
        return RunPodStorageSettings(datacenter=self.datacenter, volume_id=self.volume_id, prefix=self.prefix)
