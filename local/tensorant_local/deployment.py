"""A whole deployment on this machine, ready for its first user: cloud, GPU hosts, an AWS account, people."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tensorant_local.aws.images import SeededAccount, seed_account
from tensorant_local.base_models import offline_environment, prepared
from tensorant_local.cloud import PROJECT, LocalCloud
from tensorant_local.machines.host import SimulatedMachines
from tensorant_local.machines.options import MachineOptions

if TYPE_CHECKING:
    from types import TracebackType

    from tensorant.contract import BaseModelRef

ADMIN, OWNER = "admin@example.com", "owner@example.com"


@dataclass(frozen=True)
class Person:
    username: str
    subject: str
    token: str = field(repr=False)


class LocalDeployment:
    """Everything that a newcomer needs, from `with` to the end of its block.

    `state` is the folder that everything local lives in. `options` are those of the simulated hosts.
    """

    def __init__(
        self,
        *,
        state: Path | None = None,
        options: MachineOptions | None = None,
        time_scale: float = 1.0,
    ) -> None:
        self.state = (state or PROJECT / ".tensorant").resolve()
        self.models = PROJECT / ".tensorant" / "models"
        hosts = self.state / "machines"
        shutil.rmtree(hosts, ignore_errors=True)
        hosts.mkdir(parents=True)
        self.machines = SimulatedMachines(hosts, options=options or healthy(self.models))
        self.cloud = LocalCloud(state=self.state, machines=self.machines, time_scale=time_scale)
        self._held = contextlib.ExitStack()
        self.account: SeededAccount
        self.admin: Person
        self.owner: Person

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as held:
            held.enter_context(self.cloud)
            self.account = seed_account(self.cloud.aws)
            self.admin = self._person(ADMIN, "platform-admins")
            self.owner = self._person(OWNER)
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.profile.unlink(missing_ok=True)
        self._held.close()

    @property
    def api_url(self) -> str:
        return self.cloud.api_url

    @property
    def profile(self) -> Path:
        """What the command line reads when it is told nothing else."""
        return self.state / "local.json"

    @property
    def connection_bodies(self) -> dict[str, dict[str, Any]]:
        """What to connect with, by kind: the fields of the API's request but for kind and name."""
        account = self.account
        credentials = {
            "access_key_id": account.access_key_id,
            "secret_access_key": account.secret_access_key,
        }
        return {
            "aws": {
                "region": account.region,
                "image_id": account.image_id,
                "subnet_ids": [account.subnet_id],
                "security_group_id": account.security_group_id,
                "key_name": account.key_name,
                "credentials": credentials,
            },
            "s3": {"region": account.region, "bucket": account.bucket, "credentials": credentials},
            "runpod_storage": {
                "datacenter": self.cloud.volume.datacenter,
                "volume_id": self.cloud.volume.volume_id,
                "credentials": self.cloud.volume.secret,
            },
        }

    def model(self, name: str) -> BaseModelRef:
        """A base model that the simulated hosts find in their image, made on first use."""
        return prepared(name, self.models)

    def write_profile(self, base: BaseModelRef | None = None) -> None:
        """Let the command line find this deployment, for as long as it runs."""
        content = {
            "url": self.api_url,
            "tokens": {"admin": self.admin.token, "owner": self.owner.token},
            "organization": None,
            "connections": self.connection_bodies,
            "base_model": base.model_dump() if base else None,
        }
        with os.fdopen(os.open(self.profile, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(content, file, indent=2)

    def _person(self, username: str, *groups: str) -> Person:
        tokens = self.cloud.create_user(username, secrets.token_urlsafe(16) + "aA1!", tuple(groups))
        users = self.cloud.client("cognito-idp")
        found = users.admin_get_user(UserPoolId=self.cloud.outputs["UserPoolId"], Username=username)
        attributes = {each["Name"]: each["Value"] for each in found["UserAttributes"]}
        return Person(username, attributes["sub"], tokens.access_token)


def healthy(models: Path) -> MachineOptions:
    """Hosts with a good GPU, whose image carries the base models."""
    return MachineOptions(
        trainer_environment={**offline_environment(models), "PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore"}
    )
