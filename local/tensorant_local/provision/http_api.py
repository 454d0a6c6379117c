"""The HTTP API: from its parts in the template to the routes of the front."""

from __future__ import annotations

import urllib.request
import uuid
from typing import TYPE_CHECKING

from tensorant_local.http_routes import DEFAULT, INTEGRATION_SECONDS, Route
from tensorant_local.jwt_authorizer import JwtAuthorizer
from tensorant_local.provision.resources import REGION, Properties, Site
from tensorant_local.template import Created, NotUnderstood

if TYPE_CHECKING:
    from tensorant_local.jwt_authorizer import KeySource
    from tensorant_local.provision.resources import Maker

KEYS_TIMEOUT_SECONDS = 10


def api(site: Site, _logical_id: str, properties: Properties) -> Created:
    """The one API, at the address that the front holds already."""
    if site.api_id:
        raise NotUnderstood("a second HTTP API")
    properties.disregard({"Description": "for readers", "Name": "for readers"})
    properties.expect("ProtocolType", "HTTP")
    site.api_id = _new_id()
    return Created(site.api_id, {"ApiEndpoint": site.front.url, "ApiId": site.api_id})


def stage(_site: Site, _logical_id: str, properties: Properties) -> Created:
    properties.disregard(
        {
            "AccessLogSettings": "one person calls, and sees the answers",
            "ApiId": "there is one API",
            "AutoDeploy": "routes are there from the start",
            "DefaultRouteSettings": "nobody is throttled",
        }
    )
    return Created(properties.expect("StageName", DEFAULT) or DEFAULT)


def integration(site: Site, _logical_id: str, properties: Properties) -> Created:
    properties.disregard({"ApiId": "there is one API"})
    properties.expect("IntegrationType", "AWS_PROXY")
    properties.expect("PayloadFormatVersion", "2.0")
    function = properties.take("IntegrationUri").removesuffix("/invocations").rsplit(":", 1)[-1]
    limit = properties.take("TimeoutInMillis", INTEGRATION_SECONDS * 1000) / 1000
    integration_id = _new_id()
    site.integrations[integration_id] = (function, limit)
    return Created(integration_id, {"IntegrationId": integration_id})


def authorizer(site: Site, _logical_id: str, properties: Properties) -> Created:
    """Checks tokens of this deployment's user pool; another issuer's keys are out of a loopback's reach."""
    properties.disregard({"ApiId": "there is one API", "Name": "for readers"})
    properties.expect("AuthorizerType", "JWT")
    properties.expect("IdentitySource", ["$request.header.Authorization"])
    configuration = properties.nested("JwtConfiguration")
    issuer = configuration.take("Issuer")
    host, _, pool_id = issuer.rpartition("/")
    if host != f"https://cognito-idp.{REGION}.amazonaws.com":
        raise NotUnderstood(f"tokens of {issuer}: the embedded cloud knows its own user pool alone")
    authorizer_id = _new_id()
    site.authorizers[authorizer_id] = JwtAuthorizer(
        issuer=issuer,
        audience=tuple(configuration.take("Audience")),
        keys=_keys_at(f"{site.aws.url}/{pool_id}/.well-known/jwks.json"),
    )
    return Created(authorizer_id, {"AuthorizerId": authorizer_id})


def route(site: Site, _logical_id: str, properties: Properties) -> Created:
    properties.disregard({"ApiId": "there is one API"})
    kind = properties.expect("AuthorizationType", "JWT", "NONE") or "NONE"
    authorizer_id = properties.take("AuthorizerId", None)
    function, limit = site.integrations[properties.take("Target").removeprefix("integrations/")]
    route = Route(
        key=properties.take("RouteKey"),
        function=function,
        authorizer=site.authorizers[authorizer_id] if kind == "JWT" else None,
        timeout_seconds=limit,
    )
    site.routes.append(route)
    site.invocations.append((function, "apigateway.amazonaws.com", _source_arn(site, route.key)))
    return Created(_new_id())


def _source_arn(site: Site, route_key: str) -> str:
    """What API Gateway names as the source of an invocation: API, stage, method and the route's path."""
    method, _, path = route_key.partition(" ")
    return site.arn("execute-api", f"{site.api_id}/{DEFAULT}/{method}{path}")


def _keys_at(url: str) -> KeySource:
    def fetch() -> bytes:
        with urllib.request.urlopen(url, timeout=KEYS_TIMEOUT_SECONDS) as answer:
            keys: bytes = answer.read()
            return keys

    return fetch


def _new_id() -> str:
    return uuid.uuid4().hex[:10]


MAKERS: dict[str, Maker] = {
    "AWS::ApiGatewayV2::Api": api,
    "AWS::ApiGatewayV2::Stage": stage,
    "AWS::ApiGatewayV2::Integration": integration,
    "AWS::ApiGatewayV2::Authorizer": authorizer,
    "AWS::ApiGatewayV2::Route": route,
}
