"""What a customer deploys in its own account, as a CloudFormation template with its values in place.

It has no parameters, so that nothing can be mistyped, and it holds no secret: an access key is made by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensorant.connector.policy import VERSION, Document
from tensorant.domain.connections import AwsSettings, CredentialKind

FORMAT = "2010-09-09"

STATE_CHANGES = {"source": ["aws.ec2"], "detail-type": ["EC2 Instance State-change Notification"]}
HEALTH_NOTICES = {
    "source": ["aws.health"],
    "detail-type": ["AWS Health Event"],
    "detail": {"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]},
}
"""AWS sends these to an account's default bus in the region concerned, and nowhere else."""


@dataclass(frozen=True, slots=True)
class CustomerBus:
    """The deployment's event bus for customers' events; its ARN says where the deployment is."""

    arn: str

    @property
    def region(self) -> str:
        return self.arn.split(":")[3]

    @property
    def account_id(self) -> str:
        return self.arn.split(":")[4]

    def hears_by_itself(self, settings: AwsSettings, account_id: str) -> bool:
        """The deployment hears events of its own account and region without a connector."""
        return (settings.region, account_id) == (self.region, self.account_id)


def template(settings: AwsSettings, account_id: str, document: Document, *, bus: CustomerBus) -> Document:
    """Event forwarding and the connection's identity, which is given the policy `document`.

    Deployed in the connection's account and region, and refused anywhere else. Its `Resources` are empty
    where there is nothing to deploy: a connection with the deployment's own role in its own region.
    """
    made: Document = {}
    if not bus.hears_by_itself(settings, account_id):
        made |= _forwarding(account_id, bus)
    made |= _identity(settings, document, bus)
    return {
        "AWSTemplateFormatVersion": FORMAT,
        "Description": f"Connects account {account_id} in {settings.region} to Tensorant",
        "Rules": _right_place(settings.region, account_id),
        "Resources": made,
        "Outputs": _outputs(made),
    }


# -- events ------------------------------------------------------------------------------------------------


def _forwarding(account_id: str, bus: CustomerBus) -> Document:
    return {
        "ForwardingRole": _resource(
            "AWS::IAM::Role",
            Description="Lets EventBridge hand EC2 events to Tensorant, and nothing else",
            AssumeRolePolicyDocument=_trust(
                {"Service": "events.amazonaws.com"}, {"aws:SourceAccount": account_id}
            ),
            Policies=[{"PolicyName": "forward", "PolicyDocument": _may("events:PutEvents", bus.arn)}],
        ),
        "StateChanges": _rule("EC2 instances that start, stop or end", STATE_CHANGES, bus),
        "HealthNotices": _rule("What AWS plans to do to EC2 instances", HEALTH_NOTICES, bus),
    }


def _rule(description: str, pattern: Document, bus: CustomerBus) -> Document:
    role = {"Fn::GetAtt": ["ForwardingRole", "Arn"]}
    return _resource(
        "AWS::Events::Rule",
        Description=description,
        EventPattern=pattern,
        State="ENABLED",
        Targets=[{"Id": "Tensorant", "Arn": bus.arn, "RoleArn": role}],
    )


# -- identity ----------------------------------------------------------------------------------------------


def _identity(settings: AwsSettings, document: Document, bus: CustomerBus) -> Document:
    """The policy is a managed one: inline, a user's may have 2,048 characters only (IAM quotas)."""
    if settings.credentials is CredentialKind.SAME_ACCOUNT:
        return {}
    by_role = settings.credentials is CredentialKind.ROLE
    identity = _role(settings, bus) if by_role else {"Type": "AWS::IAM::User"}
    policy = _resource(
        "AWS::IAM::ManagedPolicy",
        Description="What Tensorant may do on EC2",
        PolicyDocument=document,
        **{"Roles" if by_role else "Users": [{"Ref": "Identity"}]},
    )
    return {"Identity": identity, "IdentityPolicy": policy}


def _role(settings: AwsSettings, bus: CustomerBus) -> Document:
    """Who knows the external id and belongs to the deployment's account may assume it."""
    name = (settings.role_arn or "").rpartition("/")[2]
    return _resource(
        "AWS::IAM::Role",
        RoleName=name,
        Description="Tensorant's identity on EC2",
        AssumeRolePolicyDocument=_trust(
            {"AWS": f"arn:aws:iam::{bus.account_id}:root"}, {"sts:ExternalId": settings.external_id or ""}
        ),
    )


# -- parts -------------------------------------------------------------------------------------------------


def _right_place(region: str, account_id: str) -> Document:
    def rule(pseudo_parameter: str, value: str, description: str) -> Document:
        equals = {"Fn::Equals": [{"Ref": pseudo_parameter}, value]}
        return {"Assertions": [{"Assert": equals, "AssertDescription": description}]}

    return {
        "Region": rule("AWS::Region", region, f"Deploy this in {region}: the instances run there."),
        "Account": rule("AWS::AccountId", account_id, f"Deploy this in the account {account_id}."),
    }


def _outputs(made: Document) -> Document:
    match made.get("Identity", {}).get("Type"):
        case "AWS::IAM::User":
            value, text = {"Ref": "Identity"}, "Make an access key for this user and enter it in Tensorant."
            return {"UserName": {"Value": value, "Description": text}}
        case "AWS::IAM::Role":
            arn = {"Fn::GetAtt": ["Identity", "Arn"]}
            return {"RoleArn": {"Value": arn, "Description": "The role that Tensorant assumes."}}
        case _:
            return {}


def _resource(kind: str, **properties: Any) -> Document:
    return {"Type": kind, "Properties": properties}


def _trust(principal: Document, equal: dict[str, str]) -> Document:
    statement = {
        "Effect": "Allow",
        "Principal": principal,
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": equal},
    }
    return {"Version": VERSION, "Statement": [statement]}


def _may(action: str, resource: str) -> Document:
    return {"Version": VERSION, "Statement": [{"Effect": "Allow", "Action": action, "Resource": resource}]}
