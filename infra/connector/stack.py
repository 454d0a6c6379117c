"""The connector as a stack. Its resources are those of the plain template: there is one description of them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk.cloudformation_include import CfnInclude

from infra.constructs.exceptions import accept
from tensorant.connector.policy import policy
from tensorant.connector.template import template

if TYPE_CHECKING:
    from constructs import Construct

    from infra.connector.customer import Customer

WILDCARDS = {
    "Resource::*": "Discovery, pricing and quotas cannot be restricted to resources (the AWS guide).",
    "{place}:instance/*": "A new instance has no id yet; the policy asks for its tag instead.",
    "{place}:volume/*": "A new volume has no id yet; the policy asks for its tag instead.",
    "{place}:network-interface/*": "A new interface has no id yet, and dies with its instance.",
}
"""What cdk-nag finds in the policy, and why it must stay."""


class ConnectorStack(cdk.Stack):
    """Event forwarding and the connection's identity, in the customer's account and region."""

    def __init__(self, scope: Construct, id_: str, *, customer: Customer) -> None:
        place = cdk.Environment(account=customer.account_id, region=customer.settings.region)
        super().__init__(scope, id_, env=place)
        document = policy(
            customer.settings,
            customer.account_id,
            quota=customer.quota,
            checks=customer.checks,
            profile_role_arn=customer.profile_role_arn,
        )
        plain = template(customer.settings, customer.account_id, document, bus=customer.bus)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "connector.template.json"
            path.write_text(json.dumps(plain), encoding="utf-8")
            included = CfnInclude(self, "Connector", template_file=str(path))
        arn = f"Resource::arn:aws:ec2:{customer.settings.region}:{customer.account_id}"
        for finding, because in WILDCARDS.items():
            accept(included, f"AwsSolutions-IAM5[{finding.format(place=arn)}]", because=because)
