"""What a customer puts into its own AWS account: policies and the connector, for members to download."""

from __future__ import annotations

from typing import Annotated, Any, Self

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import BaseModel, Field

from tensorant import bootstrap
from tensorant.handlers.connection_requests import AwsPlace
from tensorant.handlers.http import actor
from tensorant.handlers.http import router as new_router
from tensorant.services.connector import Made, Wanted

router = new_router()

CONNECTION = "/v1/organizations/<organization_id>/connections/<connection_id>"

ACCOUNT = r"^[0-9]{12}$"
ROLE = r"^arn:aws:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+$"

Quota = Annotated[bool, Query(description="May read the account's vCPU quotas.")]
Checks = Annotated[bool, Query(description="May look at the key pair and the instance profile.")]
ProfileRole = Annotated[
    str | None, Query(pattern=ROLE, max_length=2048, description="The role inside the instance profile.")
]
AccountId = Annotated[
    str | None, Query(pattern=ACCOUNT, description="For a connection whose account is not known yet.")
]


class AwsPolicyRequest(AwsPlace):
    """The settings of a connection that is still to be made, and what its policy is to hold besides."""

    account_id: Annotated[str, Field(pattern=ACCOUNT)]
    quota: bool = False
    checks: bool = False
    profile_role_arn: Annotated[str, Field(pattern=ROLE, max_length=2048)] | None = None


class PolicyView(BaseModel):
    """`policy` is ready to be pasted; `notes` say what was assumed in it."""

    policy: dict[str, Any]
    account_id: str
    region: str
    notes: tuple[str, ...]

    @classmethod
    def of(cls, made: Made) -> Self:
        return cls(policy=made.document, account_id=made.account_id, region=made.region, notes=made.notes)


class ConnectorView(BaseModel):
    """`template` is for CloudFormation in `region` of the account."""

    template: dict[str, Any]
    account_id: str
    region: str
    notes: tuple[str, ...]

    @classmethod
    def of(cls, made: Made) -> Self:
        return cls(template=made.document, account_id=made.account_id, region=made.region, notes=made.notes)


@router.get(f"{CONNECTION}/policy")
def show_policy(
    organization_id: str,
    connection_id: str,
    *,
    quota: Quota = False,
    checks: Checks = False,
    profile_role_arn: ProfileRole = None,
    account_id: AccountId = None,
) -> PolicyView:
    """The IAM policy of the connection's identity, with its values in place."""
    wanted = Wanted(quota=quota, checks=checks, profile_role_arn=profile_role_arn, account_id=account_id)
    made = bootstrap.connector().policy(actor(router.current_event), organization_id, connection_id, wanted)
    return PolicyView.of(made)


@router.get(f"{CONNECTION}/connector")
def show_connector(
    organization_id: str,
    connection_id: str,
    *,
    quota: Quota = False,
    checks: Checks = False,
    profile_role_arn: ProfileRole = None,
    account_id: AccountId = None,
) -> ConnectorView:
    """The connector as a CloudFormation template: event forwarding, and the connection's identity."""
    wanted = Wanted(quota=quota, checks=checks, profile_role_arn=profile_role_arn, account_id=account_id)
    made = bootstrap.connector().template(actor(router.current_event), organization_id, connection_id, wanted)
    return ConnectorView.of(made)


@router.post("/v1/organizations/<organization_id>/aws-policy")
def draft_policy(organization_id: str, request: AwsPolicyRequest) -> PolicyView:
    """The policy for a connection that is still to be made. Stores nothing."""
    wanted = Wanted(quota=request.quota, checks=request.checks, profile_role_arn=request.profile_role_arn)
    made = bootstrap.connector().policy_for(
        actor(router.current_event), organization_id, request.settings(), request.account_id, wanted
    )
    return PolicyView.of(made)
