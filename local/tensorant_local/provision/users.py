"""The user pool: its accounts, client and groups. Its tokens are signed by moto and checked by the front."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorant_local.provision.resources import REGION, Properties, Site
from tensorant_local.template import Created

if TYPE_CHECKING:
    from tensorant_local.provision.resources import Maker

NO_MAIL = "nobody is written to"


def user_pool(site: Site, logical_id: str, properties: Properties) -> Created:
    properties.disregard(
        {
            "AccountRecoverySetting": NO_MAIL,
            "EmailVerificationMessage": NO_MAIL,
            "EmailVerificationSubject": NO_MAIL,
            "SmsVerificationMessage": NO_MAIL,
            "VerificationMessageTemplate": NO_MAIL,
            "DeletionProtection": "the pool goes with the process, whatever protects it",
            "EnabledMfas": "no local user sets up a second factor",
        }
    )
    properties.expect("MfaConfiguration", "OFF", "OPTIONAL")
    pool = site.client("cognito-idp").create_user_pool(
        PoolName=properties.take("UserPoolName", site.name(logical_id)),
        **properties.given(
            "AdminCreateUserConfig", "AutoVerifiedAttributes", "Policies", "UsernameAttributes"
        ),
    )["UserPool"]
    provider = f"cognito-idp.{REGION}.amazonaws.com/{pool['Id']}"
    attributes = {
        "Arn": pool["Arn"],
        "ProviderName": provider,
        "ProviderURL": f"https://{provider}",
        "UserPoolId": pool["Id"],
    }
    return Created(pool["Id"], attributes)


def user_pool_client(site: Site, logical_id: str, properties: Properties) -> Created:
    properties.expect("AllowedOAuthFlowsUserPoolClient", False)
    properties.expect("SupportedIdentityProviders", ["COGNITO"])
    properties.disregard({"PreventUserExistenceErrors": "moto's errors are its own"})
    client = site.client("cognito-idp").create_user_pool_client(
        ClientName=properties.take("ClientName", site.name(logical_id)),
        **properties.given(
            "UserPoolId",
            "ExplicitAuthFlows",
            "GenerateSecret",
            "AccessTokenValidity",
            "IdTokenValidity",
            "RefreshTokenValidity",
            "TokenValidityUnits",
        ),
    )["UserPoolClient"]
    return Created(client["ClientId"], {"ClientId": client["ClientId"]})


def user_pool_group(site: Site, _logical_id: str, properties: Properties) -> Created:
    group = properties.given("UserPoolId", "GroupName", "Description", "Precedence")
    site.client("cognito-idp").create_group(**group)
    return Created(group["GroupName"])


MAKERS: dict[str, Maker] = {
    "AWS::Cognito::UserPool": user_pool,
    "AWS::Cognito::UserPoolClient": user_pool_client,
    "AWS::Cognito::UserPoolGroup": user_pool_group,
}
