"""Opens storage connections, each with its own credentials."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from tensorant.adapters.s3 import runpod
from tensorant.adapters.s3.clients import Place
from tensorant.adapters.s3.guard import GuardedSession, guard
from tensorant.adapters.s3.store import S3Store
from tensorant.domain.connections import Connection, S3Settings, Settings
from tensorant.domain.endpoints import forbidden
from tensorant.domain.errors import Configuration
from tensorant.domain.storages import RUNPOD_ENDPOINT, RunPodStorageSettings
from tensorant.ports import ObjectStore, Secrets


@dataclass(frozen=True)
class S3Stores:
    """`private_allowed`: the deployment lets customers' endpoints be at private addresses.

    `runpod_endpoint` is RunPod's, with {datacenter} in it. `read_seconds` is how long one answer may take; None:
    as long as the store is known to need.
    """

    secrets: Secrets
    private_allowed: bool = False
    runpod_endpoint: str = RUNPOD_ENDPOINT
    read_seconds: float | None = None

    def open(self, connection: Connection) -> ObjectStore:
        place = self._place(connection.settings)
        if self.read_seconds is not None:
            place = replace(place, read_seconds=self.read_seconds)
        client = place.client(self.secrets.read(connection.id))
        abilities = connection.storage_abilities
        if place.endpoint_url is None:
            return S3Store(client, place.bucket, place.key_prefix, abilities)
        verdict = partial(forbidden, private_allowed=self.private_allowed)
        session = GuardedSession(verdict, read_seconds=place.read_seconds)
        guard(client, session)
        return S3Store(client, place.bucket, place.key_prefix, abilities, session)

    def _place(self, settings: Settings) -> Place:
        match settings:
            case S3Settings():
                return Place(
                    region=settings.region,
                    bucket=settings.bucket,
                    prefix=settings.prefix,
                    endpoint_url=settings.endpoint_url,
                    addressing_style=settings.addressing_style,
                )
            case RunPodStorageSettings():
                return runpod.place(settings, endpoint=self.runpod_endpoint)
        raise Configuration(
            "not_storage", "The connection is not to storage.", mend="Choose a storage connection."
        )
