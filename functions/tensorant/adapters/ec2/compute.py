"""`ports.Compute` on EC2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tensorant.adapters.ec2 import catalog, checks
from tensorant.adapters.ec2.errors import translated
from tensorant.adapters.ec2.pricing import PRICING_REGION, Prices
from tensorant.adapters.ec2.requests import run_instances
from tensorant.domain.connections import AwsSettings, CheckVerdict, Connection, GpuType
from tensorant.domain.errors import DOUBTFUL, Configuration, Credentials, Permission, ProviderError
from tensorant.domain.machines import Call, Machine, Observation, Seen
from tensorant.ports import Compute, ComputeCheck, CurrentPrice, Listed, Secrets

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_sts import STSClient

ASK_ONCE = Config(retries={"mode": "standard", "total_max_attempts": 1}, connect_timeout=5, read_timeout=30)
"""RunInstances: a capacity error is a 5xx that botocore would silently retry."""

PATIENT = Config(retries={"mode": "standard", "total_max_attempts": 3}, connect_timeout=5, read_timeout=15)

ASKED_BEFORE = {"IdempotentInstanceTerminated", "IdempotentParameterMismatch"}
"""This very ask made a machine earlier: its token finds it."""

RESTORE_TAG = (
    "Restore the tag tensorant:managed=true on {}, and the policy's right to stop and terminate instances that "
    "carry it; then choose Retry GPU release."
)

STATES = {
    "pending": Seen.PENDING,
    "running": Seen.RUNNING,
    "stopping": Seen.STOPPING,
    "stopped": Seen.STOPPED,
    "shutting-down": Seen.SHUTTING_DOWN,
    "terminated": Seen.GONE,
}


@dataclass(frozen=True)
class Ec2Computes:
    """Opens a connection with its own credentials."""

    secrets: Secrets

    def open(self, connection: Connection) -> Compute:
        if not isinstance(connection.settings, AwsSettings):
            raise Configuration("not_aws", "The connection is not to AWS.", mend="Choose an AWS connection.")
        secret = self.secrets.read(connection.id)
        session = boto3.Session(
            aws_access_key_id=secret["access_key_id"],
            aws_secret_access_key=secret["secret_access_key"],
            aws_session_token=secret.get("session_token"),
            region_name=connection.settings.region,
        )
        return Ec2Compute(session, connection.settings.region)


class Ec2Compute:
    """EC2 in one region of one account. Clients are made when first needed: each takes its time."""

    def __init__(self, session: boto3.Session, region: str) -> None:
        self._session = session
        self._region = region
        self._made: EC2Client | None = None

    # -- asking, reading, stopping -----------------------------------------------------------------------

    def ask(self, machine: Machine, *, user_data: str) -> Observation:
        self._require_account(machine.account_id)
        client = self._session.client("ec2", config=ASK_ONCE)
        try:
            answer = client.run_instances(**run_instances(machine, user_data=user_data))
        except (ClientError, BotoCoreError) as error:
            if _code(error) in ASKED_BEFORE:
                return self.observe(machine)
            raise translated(error, doing=f"start a {machine.candidate.instance_type}") from error
        return _observation(answer["Instances"][0])

    def observe(self, machine: Machine) -> Observation:
        request: dict[str, Any] = (
            {"InstanceIds": [machine.instance_id]}
            if machine.instance_id
            else {"Filters": [{"Name": "client-token", "Values": [machine.client_token]}]}
        )
        try:
            answer = self._ec2.describe_instances(**request)
        except (ClientError, BotoCoreError) as error:
            if _code(error) == "InvalidInstanceID.NotFound":
                return self._missing()
            raise translated(error, doing="read the instance") from error
        found = [each for reservation in answer["Reservations"] for each in reservation["Instances"]]
        return _observation(found[0]) if found else self._missing()

    def make(self, call: Call, machine: Machine) -> None:
        """Stop or terminate. A machine that is unknown, or on its way elsewhere, is left to `observe`."""
        if machine.instance_id is None:
            return
        try:
            if call is Call.STOP:
                self._ec2.stop_instances(InstanceIds=[machine.instance_id])
            else:
                self._ec2.terminate_instances(InstanceIds=[machine.instance_id])
        except (ClientError, BotoCoreError) as error:
            if _code(error) in {"InvalidInstanceID.NotFound", "IncorrectInstanceState"}:
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
            pages = self._ec2.get_paginator("describe_instances").paginate(Filters=filters)
            return [
                _listed(instance)
                for page in pages
                for reservation in page["Reservations"]
                for instance in reservation["Instances"]
            ]
        except (ClientError, BotoCoreError) as error:
            raise translated(error, doing="list the instances") from error

    def stop(self, instance_id: str) -> None:
        try:
            self._ec2.stop_instances(InstanceIds=[instance_id])
        except (ClientError, BotoCoreError) as error:
            raise translated(error, doing=f"stop {instance_id}") from error

    def price(self, instance_type: str) -> CurrentPrice:
        prices = self._prices
        return CurrentPrice(
            compute_usd_per_hour=prices.compute_per_hour(instance_type),
            disk_usd_per_gib_month=prices.gp3_per_gib_month(),
        )

    # -- checking ----------------------------------------------------------------------------------------

    def check(self, settings: AwsSettings) -> ComputeCheck:
        try:
            return self._check(settings)
        except (ClientError, BotoCoreError) as error:
            failed = translated(error, doing="check the connection")
        except ProviderError as error:
            failed = error
        if isinstance(failed, DOUBTFUL):
            raise failed
        item = checks.item("aws", CheckVerdict.FAILED, failed.message, failed.mend)
        return ComputeCheck(items=(item,), account_id=None, image=None)

    def _check(self, settings: AwsSettings) -> ComputeCheck:
        account_id = self._account()
        items = [checks.item("credentials", CheckVerdict.OK, f"account {account_id}")]
        images = _found_or_nothing(lambda: self._ec2.describe_images(ImageIds=[settings.image_id])["Images"])
        image_item, image = checks.image(images, settings)
        subnets = _found_or_nothing(
            lambda: self._ec2.describe_subnets(SubnetIds=list(settings.subnet_ids))["Subnets"]
        )
        groups = _found_or_nothing(
            lambda: self._ec2.describe_security_groups(GroupIds=[settings.security_group_id])[
                "SecurityGroups"
            ]
        )
        items += [
            image_item,
            checks.subnets(subnets, settings),
            checks.security_group(groups, subnets, settings),
        ]
        types, excluded = self._catalog([each["AvailabilityZone"] for each in subnets])
        priced = sum(1 for each in types if each.usd_per_hour is not None)
        items.append(checks.catalog(len(types), priced))
        return ComputeCheck(
            items=tuple(items),
            account_id=account_id,
            image=image,
            types=types,
            excluded=excluded,
            disk_usd_per_gib_month=self._prices.gp3_per_gib_month(),
        )

    def _catalog(self, zones: list[str]) -> tuple[tuple[GpuType, ...], dict[str, str]]:
        usable, excluded = catalog.describe(self._ec2)
        offered = catalog.zones_of(self._ec2, zones) if zones else {}
        prices = self._prices
        types = tuple(
            GpuType(
                instance_type=each.instance_type,
                gpu=each.gpu,
                gpu_memory_mib=each.gpu_memory_mib,
                vcpus=each.vcpus,
                memory_mib=each.memory_mib,
                zones=offered[each.instance_type],
                usd_per_hour=prices.compute_per_hour(each.instance_type),
            )
            for each in usable
            if each.instance_type in offered
        )
        excluded |= {
            each.instance_type: "the subnets' zones do not offer it"
            for each in usable
            if each.instance_type not in offered
        }
        return types, excluded

    # -- plumbing ----------------------------------------------------------------------------------------

    @property
    def _ec2(self) -> EC2Client:
        if self._made is None:
            self._made = self._session.client("ec2", config=PATIENT)
        return self._made

    @property
    def _prices(self) -> Prices:
        client = self._session.client("pricing", region_name=PRICING_REGION, config=PATIENT)
        return Prices(client, self._region)

    def _require_account(self, account_id: str) -> None:
        """Credentials may have been replaced since the check."""
        try:
            found = self._account()
        except (ClientError, BotoCoreError) as error:
            raise translated(error, doing="read the account's id") from error
        if found != account_id:
            raise Credentials(
                "other_account",
                f"The connection's credentials are of account {found}, and it was checked with {account_id}.",
                mend=f"Replace them with credentials of account {account_id}, or check the connection again.",
            )

    def _account(self) -> str:
        client: STSClient = self._session.client("sts", config=PATIENT)
        return client.get_caller_identity()["Account"]

    def _missing(self) -> Observation:
        """Nobody of that name; who was asking decides what that proves."""
        try:
            return Observation(state=Seen.MISSING, account_id=self._account())
        except (ClientError, BotoCoreError) as error:
            raise translated(error, doing="read the account's id") from error


def _observation(instance: Mapping[str, Any]) -> Observation:
    reason = _reason(instance.get("StateReason", {})) or instance.get("StateTransitionReason", "")
    return Observation(
        state=STATES[instance["State"]["Name"]],
        instance_id=instance["InstanceId"],
        started_at=instance.get("LaunchTime"),
        reason=reason,
    )


def _listed(instance: Mapping[str, Any]) -> Listed:
    tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
    attempt = tags.get("tensorant:attempt", "")
    return Listed(
        observation=_observation(instance),
        client_token=instance.get("ClientToken") or None,
        run_id=tags.get("tensorant:run"),
        attempt=int(attempt) if attempt.isdecimal() else None,
    )


def _reason(told: Mapping[str, str]) -> str:
    """`Code: message` of a StateReason; a pending instance's says nothing."""
    code, message = told.get("Code", ""), told.get("Message", "")
    if code in {"", "pending"}:
        return ""
    return message if message.startswith(code) else f"{code}: {message}"


def _found_or_nothing(read: Any) -> list[Mapping[str, Any]]:
    """What was asked for by id; nothing if AWS does not know it."""
    try:
        return list(read())
    except ClientError as error:
        code = _code(error) or ""
        if ".NotFound" in code or ".Malformed" in code:
            return []
        raise


def _code(error: ClientError | BotoCoreError) -> str | None:
    return error.response["Error"]["Code"] if isinstance(error, ClientError) else None
