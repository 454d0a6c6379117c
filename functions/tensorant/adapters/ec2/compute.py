"""`ports.Compute` on EC2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tensorant.adapters.ec2 import checking, quotas
from tensorant.adapters.ec2.clients import Clients
from tensorant.adapters.ec2.errors import code_of, translated
from tensorant.adapters.ec2.observations import STATES, listed, observation
from tensorant.adapters.ec2.requests import run_instances
from tensorant.domain.connections import AwsSettings
from tensorant.domain.errors import Credentials, Permission
from tensorant.domain.machines import Call, Machine, Observation, Seen
from tensorant.domain.quotas import VcpuQuota
from tensorant.ports import ComputeCheck, CurrentPrice, Listed

ASKED_BEFORE = {"IdempotentInstanceTerminated", "IdempotentParameterMismatch"}
"""This very ask made a machine earlier: its token finds it."""

RESTORE_TAG = (
    "Restore the tag tensorant:managed=true on {}, and the policy's right to stop and terminate instances that "
    "carry it; then choose Retry GPU release."
)


@dataclass(frozen=True)
class Ec2Compute:
    """EC2 in one region of one account."""

    clients: Clients

    # -- asking, reading, stopping -----------------------------------------------------------------------

    def ask(self, machine: Machine, *, user_data: str) -> Observation:
        self._require_account(machine.account_id)
        request = run_instances(machine, user_data=user_data)
        try:
            answer = self.clients.ec2_once.run_instances(**request)
        except (ClientError, BotoCoreError) as error:
            if code_of(error) in ASKED_BEFORE:
                return self.observe(machine)
            wanted = machine.candidate.instance_type
            raise translated(error, doing=f"start a {wanted}", instance_type=wanted) from error
        return observation(answer["Instances"][0])

    def observe(self, machine: Machine) -> Observation:
        request: dict[str, Any] = (
            {"InstanceIds": [machine.instance_id]}
            if machine.instance_id
            else {"Filters": [{"Name": "client-token", "Values": [machine.client_token]}]}
        )
        try:
            answer = self.clients.ec2.describe_instances(**request)
        except (ClientError, BotoCoreError) as error:
            if code_of(error) == "InvalidInstanceID.NotFound":
                return self._missing()
            raise translated(error, doing="read the instance") from error
        found = [each for reservation in answer["Reservations"] for each in reservation["Instances"]]
        return observation(found[0]) if found else self._missing()

    def make(self, call: Call, machine: Machine) -> None:
        """Stop or terminate. A machine that is unknown, or on its way elsewhere, is left to `observe`."""
        if machine.instance_id is None:
            return
        try:
            if call is Call.STOP:
                self.clients.ec2.stop_instances(InstanceIds=[machine.instance_id])
            else:
                self.clients.ec2.terminate_instances(InstanceIds=[machine.instance_id])
        except (ClientError, BotoCoreError) as error:
            if code_of(error) in {"InvalidInstanceID.NotFound", "IncorrectInstanceState"}:
                return
            refused = translated(error, doing=f"{call} {machine.instance_id}")
            if isinstance(refused, Permission):
                refused.mend = RESTORE_TAG.format(machine.instance_id)
            raise refused from error

    def listed(self, deployment_id: str) -> Sequence[Listed]:
        filters: Any = [
            {"Name": "tag:tensorant:deployment", "Values": [deployment_id]},
            {"Name": "instance-state-name", "Values": [name for name in STATES if name != "terminated"]},
        ]
        try:
            pages = self.clients.ec2.get_paginator("describe_instances").paginate(Filters=filters)
            return [
                listed(instance)
                for page in pages
                for reservation in page["Reservations"]
                for instance in reservation["Instances"]
            ]
        except (ClientError, BotoCoreError) as error:
            raise translated(error, doing="list the instances") from error

    def stop(self, instance_id: str) -> None:
        try:
            self.clients.ec2.stop_instances(InstanceIds=[instance_id])
        except (ClientError, BotoCoreError) as error:
            raise translated(error, doing=f"stop {instance_id}") from error

    def prices(self, instance_types: Sequence[str]) -> Mapping[str, CurrentPrice]:
        prices = self.clients.prices
        disk = prices.gp3_per_gib_month()
        if len(instance_types) == 1:
            found = {name: prices.compute_per_hour(name) for name in instance_types}
        else:
            found = prices.all_compute_per_hour(instance_types)
        return {
            name: CurrentPrice(compute_usd_per_hour=compute, disk_usd_per_gib_month=disk)
            for name, compute in found.items()
        }

    def quota(self, instance_type: str) -> VcpuQuota:
        return quotas.vcpu_quota(self.clients, instance_type)

    def check(self, settings: AwsSettings) -> ComputeCheck:
        return checking.check(self.clients, settings)

    # -- plumbing ----------------------------------------------------------------------------------------

    def _require_account(self, account_id: str) -> None:
        """Credentials may have been replaced since the check."""
        found = self.clients.account()
        if found != account_id:
            raise Credentials(
                "other_account",
                f"The connection's credentials are of account {found}, and it was checked with {account_id}.",
                mend=f"Replace them with credentials of account {account_id}, or check the connection again.",
            )

    def _missing(self) -> Observation:
        """Nobody of that name; who was asking decides what that proves."""
        return Observation(state=Seen.MISSING, account_id=self.clients.account())
