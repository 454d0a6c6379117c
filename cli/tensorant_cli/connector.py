"""`tensorant connections policy` and `connector`: what a customer's administrator puts into the account."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from tensorant_cli import connection_options as option
from tensorant_cli.errors import CliError
from tensorant_cli.models import Made
from tensorant_cli.options import AsJson, OrganizationId, examples, given
from tensorant_cli.output import note, say_json
from tensorant_cli.session import Session

ConnectionId = Annotated[
    str | None,
    typer.Argument(metavar="CONNECTION", help="By default the aws one used last.", show_default=False),
]
Quota = Annotated[bool, typer.Option("--quota", help="May also read the account's vCPU quotas.")]
Checks = Annotated[
    bool, typer.Option("--checks", help="May also look at the key pair and the instance profile.")
]
ProfileRoleArn = Annotated[
    str | None,
    typer.Option(metavar="ARN", help="The role inside the instance profile.", show_default=False),
]
AccountId = Annotated[
    str | None,
    typer.Option(
        metavar="ACCOUNT", help="Twelve digits; needed before a check has ended well.", show_default=False
    ),
]

POLICY_EXAMPLES = examples(
    "tensorant connections policy --quota > policy.json",
    "tensorant connections policy --account-id 123456789012 --region us-east-1 --image-id ami-… "
    "--subnet-id subnet-… --security-group-id sg-…   (before there is a connection)",
)
CONNECTOR_EXAMPLES = examples(
    "tensorant connections connector > connector.json",
    "aws cloudformation deploy --stack-name tensorant --template-file connector.json "
    "--capabilities CAPABILITY_NAMED_IAM",
)


def policy(
    context: typer.Context,
    connection_id: ConnectionId = None,
    *,
    organization_id: OrganizationId = None,
    quota: Quota = False,
    checks: Checks = False,
    profile_role_arn: ProfileRoleArn = None,
    account_id: AccountId = None,
    region: option.Region = None,
    image_id: option.ImageId = None,
    subnet_ids: option.SubnetIds = None,
    security_group_id: option.SecurityGroupId = None,
    key_name: option.KeyName = None,
    instance_profile_arn: option.InstanceProfileArn = None,
    as_json: AsJson = False,
) -> None:
    """Print the IAM policy of a connection's user or role, its values in place.

    With settings instead of a connection, for one that is still to be made. Make it a customer managed policy:
    a user's inline policy may have 2,048 characters only.
    """
    image = given(image_id=image_id, key_name=key_name, instance_profile_arn=instance_profile_arn)
    network = given(region=region, subnet_ids=subnet_ids or None, security_group_id=security_group_id)
    settings = image | network
    wanted = given(quota=quota or None, checks=checks or None, profile_role_arn=profile_role_arn)
    wanted |= given(account_id=account_id)
    if settings and connection_id:
        raise CliError("A connection has its own settings.", mend="Give the connection or the settings.")
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        if settings:
            found = session.client.policy_for(organization, _complete(settings | wanted))
        else:
            chosen = session.connection_id(organization, connection_id, kind="aws", option="CONNECTION")
            found = session.client.policy(organization, chosen, wanted)
        _print(found, found.policy, as_json=as_json)


def connector(
    context: typer.Context,
    connection_id: ConnectionId = None,
    *,
    organization_id: OrganizationId = None,
    quota: Quota = False,
    checks: Checks = False,
    profile_role_arn: ProfileRoleArn = None,
    account_id: AccountId = None,
    as_json: AsJson = False,
) -> None:
    """Print the CloudFormation template that a connection's account deploys.

    It forwards the account's EC2 events, and makes the connection's user or role with its policy.
    """
    wanted = given(quota=quota or None, checks=checks or None, profile_role_arn=profile_role_arn)
    wanted |= given(account_id=account_id)
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        chosen = session.connection_id(organization, connection_id, kind="aws", option="CONNECTION")
        found = session.client.connector(organization, chosen, wanted)
        _print(found, found.template, as_json=as_json)
        note(f"Deploy it in {found.region} of the account {found.account_id}, with CAPABILITY_NAMED_IAM.")


REQUIRED = ("account_id", "region", "image_id", "subnet_ids", "security_group_id")


def _complete(settings: dict[str, Any]) -> dict[str, Any]:
    """Raises `CliError` for what is missing."""
    missing = [name for name in REQUIRED if not settings.get(name)]
    if missing:
        names = ", ".join(f"--{name.replace('_', '-').removesuffix('s')}" for name in missing)
        raise CliError(f"Not given: {names}.", mend="Name them all, or a connection that has them.")
    return settings


def _print(found: Made, document: dict[str, Any], *, as_json: bool) -> None:
    """The document alone, so that it can go into a file; what was assumed in it goes elsewhere."""
    if as_json:
        say_json(found)
    else:
        print(json.dumps(document, indent=2))
    for each in found.notes:
        note(each)
