"""`tensorant connections create …`: saved with their credentials, then checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import typer

from tensorant_cli import connection_options as option
from tensorant_cli.checking import finish, show
from tensorant_cli.credentials import RUNPOD_STORAGE, Keys
from tensorant_cli.errors import CliError
from tensorant_cli.models import Connection
from tensorant_cli.options import AsJson, OrganizationId, Wait, examples, given
from tensorant_cli.output import note
from tensorant_cli.session import PLATFORM, Session

app = typer.Typer(
    no_args_is_help=True,
    help="Save a connection and check it. Checks never start a machine. Keys come from AWS_ACCESS_KEY_ID, "
    "AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_CREDENTIAL_EXPIRATION, or are asked for.",
)


@app.command(
    "aws",
    epilog=examples(
        "tensorant connections create aws --region us-east-1 --image-id ami-0123456789abcdef0 "
        "--subnet-id subnet-0123456789abcdef0 --security-group-id sg-0123456789abcdef0",
        "tensorant connections create aws … --role-arn arn:aws:iam::123456789012:role/tensorant-training",
        "In local mode: tensorant connections create aws",
    ),
)
def create_aws(
    context: typer.Context,
    *,
    organization_id: OrganizationId = None,
    name: option.Name = None,
    region: option.Region = None,
    image_id: option.ImageId = None,
    subnet_ids: option.SubnetIds = None,
    security_group_id: option.SecurityGroupId = None,
    key_name: option.KeyName = None,
    instance_profile_arn: option.InstanceProfileArn = None,
    role_arn: option.RoleArn = None,
    same_account: option.SameAccount = False,
    managed_by_platform: option.ManagedByPlatform = False,
    expires_at: option.ExpiresAt = None,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Connect an AWS account to train on its EC2 GPUs.

    With --role-arn no key is asked for: the external id is shown, and the check waits until the role exists.
    """
    network = given(region=region, subnet_ids=subnet_ids, security_group_id=security_group_id)
    image = given(name=name, image_id=image_id, key_name=key_name, instance_profile_arn=instance_profile_arn)
    proof = Proof(role_arn=role_arn, same_account=same_account, expires_at=expires_at)
    with Session.of(context) as session:
        body = _body(session, "aws", network | image, required=AWS_REQUIRED)
        body["credentials"] = proof.credentials(session, "aws")
        if managed_by_platform or same_account:
            body["managed_by"] = PLATFORM
        _create(session, organization_id, body, wait=wait and role_arn is None, as_json=as_json)


@app.command(
    "s3",
    epilog=examples(
        "tensorant connections create s3 --region us-east-1 --bucket example-adapters --prefix tensorant/",
        "tensorant connections create s3 --endpoint-url https://ACCOUNT.r2.cloudflarestorage.com --region auto "
        "--bucket example-adapters",
        "In local mode: tensorant connections create s3",
    ),
)
def create_s3(
    context: typer.Context,
    *,
    organization_id: OrganizationId = None,
    name: option.Name = None,
    endpoint_url: option.EndpointUrl = None,
    region: option.Region = None,
    bucket: option.Bucket = None,
    prefix: option.Prefix = None,
    addressing_style: option.AddressingStyle = None,
    expires_at: option.ExpiresAt = None,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Connect a bucket of AWS S3 or of a store that speaks its API: datasets and adapters live there."""
    place = given(endpoint_url=endpoint_url, region=region, bucket=bucket, prefix=prefix)
    settings = place | given(name=name, addressing_style=addressing_style)
    with Session.of(context) as session:
        body = _body(session, "s3", settings, required=("region", "bucket"))
        body["credentials"] = Proof(expires_at=expires_at).credentials(session, "s3")
        _create(session, organization_id, body, wait=wait, as_json=as_json)


@app.command(
    "runpod-storage",
    epilog=examples(
        "tensorant connections create runpod-storage --datacenter EU-RO-1 --volume-id a1b2c3d4e5",
        "In local mode: tensorant connections create runpod-storage",
    ),
)
def create_runpod_storage(
    context: typer.Context,
    *,
    organization_id: OrganizationId = None,
    name: option.Name = None,
    datacenter: option.Datacenter = None,
    volume_id: option.VolumeId = None,
    prefix: option.Prefix = None,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Connect a RunPod network volume. Its S3 API key comes from RUNPOD_S3_ACCESS_KEY_ID and
    RUNPOD_S3_SECRET_ACCESS_KEY, or is asked for.
    """
    settings = given(name=name, datacenter=datacenter, volume_id=volume_id, prefix=prefix)
    with Session.of(context) as session:
        body = _body(session, RUNPOD_STORAGE, settings, required=("datacenter", "volume_id"))
        body["credentials"] = Proof().credentials(session, RUNPOD_STORAGE)
        _create(session, organization_id, body, wait=wait, as_json=as_json)


AWS_REQUIRED = ("region", "image_id", "subnet_ids", "security_group_id")


@dataclass(frozen=True, kw_only=True)
class Proof:
    """How a connection is to prove who it is; an access key, unless another way is named."""

    role_arn: str | None = None
    same_account: bool = False
    expires_at: str | None = None

    def credentials(self, session: Session, kind: str) -> dict[str, str]:
        """As the API takes them. Raises `CliError` where two ways are named, or keys are missing."""
        if self.role_arn and self.same_account:
            raise CliError("--role-arn and --same-account exclude each other.", mend="Give one of them.")
        if self.role_arn:
            return {"kind": "role", "role_arn": self.role_arn}
        if self.same_account:
            return {"kind": "same_account"}
        return Keys(session.profile, session.surroundings.environ, self.expires_at).of(kind)


def _body(
    session: Session, kind: str, settings: Mapping[str, Any], *, required: tuple[str, ...]
) -> dict[str, Any]:
    """The settings: options first, then what local mode offers. Raises `CliError` for what is missing."""
    local = {
        name: value
        for name, value in session.profile.connections.get(kind, {}).items()
        if name not in {"kind", "credentials"}
    }
    assumed = [name for name in local if name not in settings]
    if assumed:
        note(f"From local mode: {', '.join(assumed)}.")
    body = {"name": kind, **local, **settings, "kind": kind}
    missing = [option for option in required if not body.get(option)]
    if missing:
        names = ", ".join(f"--{name.replace('_', '-').removesuffix('s')}" for name in missing)
        command = kind.replace("_", "-")
        raise CliError(f"Not given: {names}.", mend=f"See tensorant connections create {command} --help.")
    return body


def _create(
    session: Session, organization_id: str | None, body: Mapping[str, Any], *, wait: bool, as_json: bool
) -> None:
    organization = session.organization_id(organization_id)
    with session.keeper(body.get("managed_by")) as keeper:
        connection = keeper.create_connection(organization, body)
    session.state.remember(organization, f"connection-{connection.kind}", connection.id)
    note(f"Saved the connection {connection.name}: {connection.id}")
    if connection.settings.get("credentials") == "role":
        _tell_role(session, connection, as_json=as_json)
        return
    finish(session, organization, connection, wait=wait, as_json=as_json)


def _tell_role(session: Session, connection: Connection, *, as_json: bool) -> None:
    """The role must trust an external id that did not exist until now; so its check comes later."""
    show(session, connection, as_json=as_json)
    note("Next, in the account of the role:")
    note(f"  tensorant connections connector {connection.id} > connector.json   and deploy it there")
    note(f"  tensorant connections check {connection.id}")
