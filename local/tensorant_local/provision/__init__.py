"""Makes what a template describes, through the SDK, in the embedded AWS. Nothing is skipped in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorant_local.http_routes import HttpApi
from tensorant_local.provision import functions, http_api, storage, users, workflow
from tensorant_local.provision.resources import ACCOUNT_ID, PARTITION, REGION, Properties, Site
from tensorant_local.template import Created, NotUnderstood, Resolver, Template

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorant_local.provision.resources import Maker

MAKERS: dict[str, Maker] = {
    **storage.MAKERS,
    **functions.MAKERS,
    **workflow.MAKERS,
    **users.MAKERS,
    **http_api.MAKERS,
}

WITHOUT_EFFECT = {
    "AWS::CDK::Metadata": "counts CDK's users",
    "AWS::CloudWatch::Alarm": "no metric is kept, and nobody is told",
}
"""Types that are passed over, each with the reason."""


class MissingPermission(Exception):
    """The stack lets a service invoke a function that does not permit it: in AWS the call would fail."""


def provision(template: Template, site: Site) -> dict[str, str]:
    """Make every resource of the template and return its outputs. Functions may be called from then on.

    Raises NotUnderstood, naming the resource, the type or the property; MissingPermission; and what the SDK
    raises when the embedded AWS refuses.
    """
    created: dict[str, Created] = {}
    resolver = Resolver(pseudo=_pseudo(site), created=created)
    for resource in template.in_order():
        if resource.type in WITHOUT_EFFECT:
            continue
        values = resolver.resolve(dict(resource.properties))
        created[resource.logical_id] = _made(site, resource.logical_id, resource.type, values)
    _check_permissions(site)
    outputs: dict[str, str] = {name: str(resolver.resolve(value)) for name, value in template.outputs.items()}
    return outputs


def http_api_of(site: Site) -> HttpApi:
    """What the front has to serve, once the stack is provisioned."""
    return HttpApi.of(site.api_id, site.routes)


def _made(site: Site, logical_id: str, kind: str, values: Mapping[str, Any]) -> Created:
    maker = MAKERS.get(kind)
    if maker is None:
        raise NotUnderstood(f"{logical_id}: the embedded cloud has no {kind}")
    properties = Properties(f"{logical_id} ({kind})", values)
    properties.disregard({"Tags": "for bills and readers"})
    made = maker(site, logical_id, properties)
    properties.finish()
    return made


def _check_permissions(site: Site) -> None:
    for function, principal, source in site.invocations:
        if not any(permission.allows(function, principal, source) for permission in site.permissions):
            raise MissingPermission(f"{principal} may not invoke {function} for {source}")


def _pseudo(site: Site) -> dict[str, str]:
    return {
        "AWS::AccountId": ACCOUNT_ID,
        "AWS::Partition": PARTITION,
        "AWS::Region": REGION,
        "AWS::StackId": site.arn("cloudformation", f"stack/{site.stack}/local"),
        "AWS::StackName": site.stack,
        "AWS::URLSuffix": "amazonaws.com",
    }
