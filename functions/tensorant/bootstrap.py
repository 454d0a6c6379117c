"""The composition root: which adapters stand behind the ports, built once for each function.

Adapters are imported where they are needed, since every import lengthens a cold start.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

from tensorant.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorant.domain.timeline import Fact
    from tensorant.domain.tokens import TokenMint
    from tensorant.ports import (
        Accounts,
        Bus,
        Clock,
        Computes,
        Ids,
        ObjectStores,
        RunLogs,
        Secrets,
        Staging,
        Store,
        Workers,
        Workflow,
    )
    from tensorant.services.agent import Agents
    from tensorant.services.asking import Asker
    from tensorant.services.cancel import Cancellations
    from tensorant.services.connection_changes import ConnectionChanges
    from tensorant.services.connection_checks import ConnectionChecker
    from tensorant.services.connections import ConnectionReader, SavedConnections
    from tensorant.services.connector import Connector
    from tensorant.services.converge import Converger
    from tensorant.services.dataset_previews import DatasetPreviews
    from tensorant.services.dataset_validation import DatasetValidator
    from tensorant.services.datasets import Datasets
    from tensorant.services.drafts import Drafts
    from tensorant.services.execution_ended import ExecutionEnds
    from tensorant.services.launch import Launches, Validator
    from tensorant.services.observe import Observer
    from tensorant.services.organizations import Organizations
    from tensorant.services.projects import Projects
    from tensorant.services.provider_events import ProviderEvents
    from tensorant.services.removals import RemovedConnections
    from tensorant.services.reviews import Reviews
    from tensorant.services.runs import Adapters, RunReader
    from tensorant.services.stuck_datasets import StuckDatasets
    from tensorant.services.sweep import Sweep
    from tensorant.services.verify import AdapterVerifier


CHECK_READ_SECONDS = 10.0
"""How long a check waits for one answer of storage: its function must live to tell that there was none."""


@cache
def settings() -> Settings:
    return Settings(os.environ)


# -- ports -----------------------------------------------------------------------------------------------


@cache
def client(service: str) -> Any:
    """A client with the function's own role."""
    import boto3

    if service == "s3":
        from tensorant.adapters.s3 import config

        return boto3.client("s3", config=config("virtual"))
    return boto3.client(service)  # type: ignore[call-overload]


@cache
def store() -> Store:
    from tensorant.adapters.dynamodb.store import DynamoStore

    return DynamoStore(client("dynamodb"), settings().table_name)


@cache
def clock() -> Clock:
    from tensorant.adapters.clock import SystemClock

    return SystemClock()


@cache
def ids() -> Ids:
    from tensorant.adapters.clock import RandomIds

    return RandomIds()


@cache
def secrets() -> Secrets:
    from tensorant.adapters.secrets_manager import SecretsManager

    return SecretsManager(client("secretsmanager"), settings().secret_prefix)


@cache
def token_mint() -> TokenMint:
    from tensorant.adapters.secrets_manager import deployment_key
    from tensorant.domain.tokens import TokenMint

    return TokenMint(deployment_key(client("secretsmanager"), settings().deployment_key_arn))


@cache
def workflow() -> Workflow:
    from tensorant.adapters.step_functions import StepFunctions

    return StepFunctions(client("stepfunctions"), settings().state_machine_arn)


@cache
def workers() -> Workers:
    from tensorant.adapters.workers import LambdaWorkers

    return LambdaWorkers(client("lambda"), settings().connection_check_arn, settings().dataset_worker_arn)


@cache
def run_logs() -> RunLogs:
    from tensorant.adapters.cloudwatch_logs import CloudWatchRunLogs

    return CloudWatchRunLogs(client("logs"), settings().run_log_group)


@cache
def staging() -> Staging:
    from tensorant.adapters.s3 import StagingBucket

    return StagingBucket(client("s3"), settings().staging_bucket)


@cache
def bus() -> Bus:
    from tensorant.adapters.event_bridge import EventBridge

    return EventBridge(client("events"), settings().event_bus)


def new_facts(records: Sequence[Mapping[str, Any]]) -> list[Fact]:
    """What a batch of the table's stream tells of runs."""
    from tensorant.adapters.dynamodb import stream

    return stream.new_facts(records)


@cache
def computes() -> Computes:
    from tensorant.adapters.ec2.roles import AssumedRoles
    from tensorant.adapters.ec2.sessions import Ec2Computes

    return Ec2Computes(secrets(), AssumedRoles(settings().deployment_id))


@cache
def accounts() -> Accounts:
    from tensorant.adapters.ec2.accounts import StsAccounts

    return StsAccounts()


@cache
def storages() -> ObjectStores:
    return _storages()


def _storages(read_seconds: float | None = None) -> ObjectStores:
    from tensorant.adapters.s3 import S3Stores
    from tensorant.domain.storages import RUNPOD_ENDPOINT

    return S3Stores(
        secrets(),
        private_allowed=settings().private_storage_allowed,
        runpod_endpoint=settings().runpod_storage_endpoint or RUNPOD_ENDPOINT,
        read_seconds=read_seconds,
    )


# -- services --------------------------------------------------------------------------------------------


@cache
def organizations() -> Organizations:
    from tensorant.services.organizations import Organizations

    return Organizations(store(), clock(), ids())


@cache
def saved_connections() -> SavedConnections:
    from tensorant.services.connections import SavedConnections

    return SavedConnections(store(), secrets(), workers(), clock(), ids())


@cache
def connection_changes() -> ConnectionChanges:
    from tensorant.services.connection_changes import ConnectionChanges

    return ConnectionChanges(store(), secrets(), accounts(), workers())


@cache
def removed_connections() -> RemovedConnections:
    from tensorant.services.removals import RemovedConnections

    return RemovedConnections(store(), clock())


@cache
def connection_reader() -> ConnectionReader:
    from tensorant.services.connections import ConnectionReader

    return ConnectionReader(store())


@cache
def connector() -> Connector:
    from tensorant.connector.template import CustomerBus
    from tensorant.services.connector import Connector

    return Connector(connection_reader(), CustomerBus(settings().customer_bus_arn))


@cache
def connection_checker() -> ConnectionChecker:
    from tensorant.services.connection_checks import ConnectionChecker

    return ConnectionChecker(store(), computes(), _storages(CHECK_READ_SECONDS), clock())


@cache
def projects() -> Projects:
    from tensorant.services.projects import Projects

    return Projects(store(), clock(), ids())


@cache
def datasets() -> Datasets:
    from tensorant.services.datasets import Datasets

    return Datasets(store(), staging(), workers(), clock(), ids())


@cache
def dataset_validator() -> DatasetValidator:
    from tensorant.services.dataset_validation import DatasetValidator

    return DatasetValidator(store(), storages(), staging())


@cache
def dataset_previews() -> DatasetPreviews:
    from tensorant.services.dataset_previews import DatasetPreviews

    return DatasetPreviews(store(), storages())


@cache
def stuck_datasets() -> StuckDatasets:
    from tensorant.services.stuck_datasets import StuckDatasets

    return StuckDatasets(store(), workers(), clock())


@cache
def drafts() -> Drafts:
    from tensorant.services.drafts import Drafts

    return Drafts(store(), clock(), ids())


@cache
def reviews() -> Reviews:
    from tensorant.services.reviews import Reviews

    return Reviews(store(), computes(), clock())


@cache
def launches() -> Launches:
    from tensorant.services.launch import Launches

    return Launches(store(), workflow(), clock())


@cache
def run_reader() -> RunReader:
    from tensorant.services.runs import RunReader

    return RunReader(store(), run_logs(), clock())


@cache
def adapters() -> Adapters:
    from tensorant.services.runs import Adapters

    return Adapters(store(), storages())


@cache
def agents() -> Agents:
    from tensorant.services.agent import Agents

    return Agents(
        store(), storages(), workflow(), run_logs(), token_mint(), clock(), settings().trainer_image
    )


@cache
def validator() -> Validator:
    from tensorant.services.launch import Validator

    return Validator(store(), computes(), clock())


@cache
def asker() -> Asker:
    from tensorant.services.asking import Asker
    from tensorant.services.candidates import Choices

    choices = Choices(clock(), settings().agent_url, settings().deployment_id)
    return Asker(store(), computes(), token_mint(), clock(), choices)


@cache
def observer() -> Observer:
    from tensorant.services.observe import Observer

    return Observer(store(), computes(), storages(), clock())


@cache
def adapter_verifier() -> AdapterVerifier:
    from tensorant.services.verify import AdapterVerifier

    return AdapterVerifier(store(), storages(), clock())


@cache
def converger() -> Converger:
    from tensorant.services.converge import Converger

    return Converger(store(), computes(), clock())


@cache
def provider_events() -> ProviderEvents:
    from tensorant.services.provider_events import ProviderEvents

    return ProviderEvents(store(), workflow(), computes(), clock())


@cache
def cancellations() -> Cancellations:
    from tensorant.services.cancel import Cancellations

    return Cancellations(store(), workflow(), clock())


@cache
def execution_ends() -> ExecutionEnds:
    from tensorant.services.execution_ended import ExecutionEnds

    return ExecutionEnds(store(), computes(), clock())


@cache
def sweep() -> Sweep:
    from tensorant.services.removals import Purges
    from tensorant.services.sweep import Sweep

    purges = Purges(store(), secrets(), clock())
    return Sweep(store(), computes(), workflow(), clock(), purges, settings().deployment_id)
