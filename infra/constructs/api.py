"""The HTTP API: people with a token of the issuer, machines with a session token that the agent function checks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from aws_cdk import RemovalPolicy
from aws_cdk import aws_apigatewayv2 as gateway
from aws_cdk import aws_logs as logs
from aws_cdk.aws_apigatewayv2_authorizers import HttpJwtAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from infra.constructs.exceptions import accept

if TYPE_CHECKING:
    from aws_cdk import aws_lambda as lambda_

    from infra.deployment import TokenIssuer

REQUESTS_PER_SECOND = 50
BURST = 100

ACCESS_LOG = {
    "requestId": "$context.requestId",
    "time": "$context.requestTime",
    "route": "$context.routeKey",
    "status": "$context.status",
    "subject": "$context.authorizer.claims.sub",
    "address": "$context.identity.sourceIp",
    "latencyMs": "$context.responseLatency",
    "error": "$context.error.message",
}
"""No path and no body: identifiers are found in the functions' logs by request id."""


class HttpFront(Construct):
    """The API and its default stage. Its address depends on no function, so that functions may carry it."""

    def __init__(self, scope: Construct, id_: str, *, issuer: TokenIssuer) -> None:
        super().__init__(scope, id_)
        self._api = gateway.HttpApi(self, "Api", create_default_stage=False, description="Tensorant")
        self._authorizer = HttpJwtAuthorizer("Jwt", issuer.url, jwt_audience=list(issuer.audiences))
        self._default_stage()

    @property
    def url(self) -> str:
        """Without a slash at the end."""
        return self._api.api_endpoint

    def serve_people(self, function: lambda_.Function, *routes: str) -> None:
        """Answer `METHOD /path` routes with `function`, for callers whose token the authorizer accepts."""
        integration = HttpLambdaIntegration(f"{function.node.id}Integration", function)
        for route in routes:
            method, path = route.split()
            self._api.add_routes(
                path=path,
                methods=[gateway.HttpMethod[method]],
                integration=integration,
                authorizer=self._authorizer,
            )

    def serve_machines(self, function: lambda_.Function, route: str) -> None:
        """Answer one route with `function`, which authenticates its callers itself."""
        method, path = route.split()
        added = self._api.add_routes(
            path=path,
            methods=[gateway.HttpMethod[method]],
            integration=HttpLambdaIntegration(f"{function.node.id}Integration", function),
        )
        accept(
            added[0],
            "AwsSolutions-APIG4",
            because="Machines bring a session token; the agent function checks it.",
        )

    def _default_stage(self) -> None:
        access = logs.LogGroup(
            self, "Access", retention=logs.RetentionDays.ONE_MONTH, removal_policy=RemovalPolicy.DESTROY
        )
        stage = gateway.HttpStage(
            self,
            "Stage",
            http_api=self._api,
            auto_deploy=True,
            throttle=gateway.ThrottleSettings(rate_limit=REQUESTS_PER_SECOND, burst_limit=BURST),
        )
        cast(
            "gateway.CfnStage", stage.node.default_child
        ).access_log_settings = gateway.CfnStage.AccessLogSettingsProperty(
            destination_arn=access.log_group_arn, format=json.dumps(ACCESS_LOG)
        )
