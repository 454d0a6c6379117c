"""The environment of a function, typed. A variable that is missing is named where it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class MissingSettingError(RuntimeError):
    """The deployment does not set a variable that this function needs."""


@dataclass(frozen=True)
class Settings:
    """Reads each setting when asked, so that a function needs only its own."""

    environment: Mapping[str, str]

    def _require(self, name: str) -> str:
        value = self.environment.get(name)
        if not value:
            raise MissingSettingError(f"The environment variable {name} is not set.")
        return value

    @property
    def table_name(self) -> str:
        return self._require("TABLE_NAME")

    @property
    def deployment_id(self) -> str:
        return self._require("DEPLOYMENT_ID")

    @property
    def admin_group(self) -> str:
        """Name of the identity provider's group whose members are platform admins."""
        return self._require("ADMIN_GROUP")

    @property
    def secret_prefix(self) -> str:
        return self._require("SECRET_PREFIX")

    @property
    def deployment_key_arn(self) -> str:
        return self._require("DEPLOYMENT_KEY_ARN")

    @property
    def state_machine_arn(self) -> str:
        """Empty in functions that only wake executions."""
        return self.environment.get("STATE_MACHINE_ARN", "")

    @property
    def staging_bucket(self) -> str:
        return self._require("STAGING_BUCKET")

    @property
    def private_storage_allowed(self) -> bool:
        """Whether customers' storage endpoints may be at private addresses."""
        return self.environment.get("ALLOW_PRIVATE_STORAGE") == "true"

    @property
    def runpod_storage_endpoint(self) -> str:
        """Of RunPod's S3 API, with {datacenter} in it, where it is reached by another address; else empty."""
        return self.environment.get("RUNPOD_STORAGE_ENDPOINT", "")

    @property
    def event_bus(self) -> str:
        """Name of the bus that facts of runs are published to."""
        return self._require("EVENT_BUS")

    @property
    def customer_bus_arn(self) -> str:
        """The bus that connected accounts forward EC2's events to."""
        return self._require("CUSTOMER_BUS_ARN")

    @property
    def run_log_group(self) -> str:
        return self._require("RUN_LOG_GROUP")

    @property
    def connection_check_arn(self) -> str:
        """Empty in functions that start no checks."""
        return self.environment.get("CONNECTION_CHECK_ARN", "")

    @property
    def dataset_worker_arn(self) -> str:
        """Empty in functions that start no validations."""
        return self.environment.get("DATASET_WORKER_ARN", "")

    @property
    def agent_url(self) -> str:
        """Base URL of the HTTP API, as machines reach it."""
        return self._require("AGENT_URL")

    @property
    def trainer_image(self) -> str:
        """The training container, by digest."""
        return self._require("TRAINER_IMAGE")
