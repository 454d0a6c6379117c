"""The table, the API, the state machine and what is kept beside them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from infra.constructs import workflow
from tests.infra.template import printed

if TYPE_CHECKING:
    from tests.infra.template import Template

ORGANIZATION = "/v1/organizations/{org_id}"
ROUTES = {
    "ANY /v1/{proxy+}": ("FunctionsApi", "JWT"),
    f"POST {ORGANIZATION}/connections": ("FunctionsConnections", "JWT"),
    f"PATCH {ORGANIZATION}/connections/{{connection_id}}": ("FunctionsConnections", "JWT"),
    f"DELETE {ORGANIZATION}/connections/{{connection_id}}": ("FunctionsConnections", "JWT"),
    f"POST {ORGANIZATION}/connections/{{connection_id}}/check": ("FunctionsConnections", "JWT"),
    f"PUT {ORGANIZATION}/connections/{{connection_id}}/credentials": ("FunctionsConnections", "JWT"),
    f"GET {ORGANIZATION}/runs/{{run_id}}/review": ("FunctionsProvider", "JWT"),
    f"GET {ORGANIZATION}/runs/{{run_id}}/adapter": ("FunctionsProvider", "JWT"),
    f"GET {ORGANIZATION}/dataset-versions/{{version_id}}/preview": ("FunctionsProvider", "JWT"),
    "POST /agent/v1/{proxy+}": ("FunctionsAgent", "NONE"),
}


def test_table(template: Template) -> None:
    table = template.only("AWS::DynamoDB::Table")

    assert table["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]
    assert [
        (index["IndexName"], [(key["AttributeName"], key["KeyType"]) for key in index["KeySchema"]])
        for index in table["GlobalSecondaryIndexes"]
    ] == [
        ("gsi1", [("gsi1pk", "HASH"), ("gsi1sk", "RANGE")]),
        ("gsi2", [("gsi2pk", "HASH"), ("gsi2sk", "RANGE")]),
    ]
    assert [index["Projection"] for index in table["GlobalSecondaryIndexes"]] == [
        {"ProjectionType": "ALL"}
    ] * 2
    assert {each["AttributeType"] for each in table["AttributeDefinitions"]} == {"S"}
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert "TimeToLiveSpecification" not in table
    assert table["BillingMode"] == "PAY_PER_REQUEST"


def test_data_outlives_the_stack(template: Template) -> None:
    assert template.only("AWS::DynamoDB::Table")["DeletionProtectionEnabled"] is True
    assert template.only("AWS::Cognito::UserPool")["DeletionProtection"] == "ACTIVE"
    for kind in ("AWS::DynamoDB::Table", "AWS::Cognito::UserPool", "AWS::SecretsManager::Secret"):
        assert template.attribute(kind, "DeletionPolicy") == {"Retain"}


def test_staging_bucket_is_private_and_forgets_after_a_day(template: Template) -> None:
    bucket = template.only("AWS::S3::Bucket")

    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert (rule["Status"], rule["ExpirationInDays"]) == ("Enabled", 1)
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert "CorsConfiguration" not in bucket


def test_staging_bucket_refuses_plain_http(template: Template) -> None:
    (statement,) = template.only("AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"]

    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_deployment_key_is_generated(template: Template) -> None:
    generated = template.only("AWS::SecretsManager::Secret")["GenerateSecretString"]

    assert generated["PasswordLength"] == 64


def test_routes_and_who_may_call_them(template: Template) -> None:
    integrations = {
        f"integrations/<{name}>": printed(integration["IntegrationUri"]).strip("<>").removesuffix(".Arn")
        for name, integration in template.resources("AWS::ApiGatewayV2::Integration").items()
    }
    routes = {
        route["RouteKey"]: (integrations[printed(route["Target"])], route["AuthorizationType"])
        for route in template.resources("AWS::ApiGatewayV2::Route").values()
    }

    assert routes == ROUTES


def test_every_integration_speaks_payload_two(template: Template) -> None:
    integrations = template.resources("AWS::ApiGatewayV2::Integration").values()

    assert {integration["PayloadFormatVersion"] for integration in integrations} == {"2.0"}


def test_tokens_of_the_user_pool_open_the_api(template: Template) -> None:
    authorizer = template.only("AWS::ApiGatewayV2::Authorizer")

    assert authorizer["AuthorizerType"] == "JWT"
    assert authorizer["IdentitySource"] == ["$request.header.Authorization"]
    assert printed(authorizer["JwtConfiguration"]["Issuer"]) == "<UsersPool.ProviderURL>"
    assert [printed(each) for each in authorizer["JwtConfiguration"]["Audience"]] == ["<UsersPoolClient>"]


def test_people_sign_in_with_a_password_and_nobody_signs_up(template: Template) -> None:
    client = template.only("AWS::Cognito::UserPoolClient")

    assert set(client["ExplicitAuthFlows"]) == {"ALLOW_USER_PASSWORD_AUTH", "ALLOW_REFRESH_TOKEN_AUTH"}
    assert (
        template.only("AWS::Cognito::UserPool")["AdminCreateUserConfig"]["AllowAdminCreateUserOnly"] is True
    )
    assert template.only("AWS::Cognito::UserPoolGroup")["GroupName"] == "platform-admins"


def test_default_stage_is_throttled_and_logged(template: Template) -> None:
    stage = template.only("AWS::ApiGatewayV2::Stage")

    assert (stage["StageName"], stage["AutoDeploy"]) == ("$default", True)
    assert stage["DefaultRouteSettings"] == {"ThrottlingBurstLimit": 100, "ThrottlingRateLimit": 50}
    assert json.loads(stage["AccessLogSettings"]["Format"])["requestId"] == "$context.requestId"


def test_every_placeholder_of_the_state_machine_is_filled(template: Template) -> None:
    machine = template.only("AWS::StepFunctions::StateMachine")
    filled = {name: printed(value) for name, value in machine["DefinitionSubstitutions"].items()}

    assert set(re.findall(r"\$\{(.+?)\}", machine["DefinitionString"])) == set(filled)
    assert filled == {
        "ValidateRunFunction": "<FunctionsValidateRun.Arn>",
        "LaunchMachineFunction": "<FunctionsLaunchMachine.Arn>",
        "AwaitSignalFunction": "<FunctionsAwaitSignal.Arn>",
        "ObserveMachineFunction": "<FunctionsObserveMachine.Arn>",
        "VerifyAdapterFunction": "<FunctionsVerifyAdapter.Arn>",
        "ConvergeMachineFunction": "<FunctionsConvergeMachine.Arn>",
    }


def test_state_machine_is_the_file_as_it_stands(template: Template) -> None:
    machine = template.only("AWS::StepFunctions::StateMachine")

    assert json.loads(machine["DefinitionString"]) == json.loads(
        workflow.DEFINITION.read_text(encoding="utf-8")
    )
    assert machine["StateMachineType"] == "STANDARD"
    assert machine["LoggingConfiguration"]["Level"] == "ERROR"


def test_state_machine_calls_its_functions_and_no_others(template: Template) -> None:
    machine = template.only("AWS::StepFunctions::StateMachine")
    called = {
        resource
        for action, resource in template.rights(machine["RoleArn"])
        if action == "lambda:InvokeFunction"
    }

    assert called == {printed(value) for value in machine["DefinitionSubstitutions"].values()}


@pytest.mark.parametrize(
    ("definition", "names", "told"),
    [
        ('{"F": "${A}", "G": "${B}"}', {"A"}, "without a function ['B']"),
        ('{"F": "${A}"}', {"A", "C"}, "without a placeholder ['C']"),
    ],
)
def test_a_placeholder_without_its_function_is_refused(definition: str, names: set[str], told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        workflow.check_placeholders(definition, names)


def test_outputs(template: Template) -> None:
    outputs = {name: printed(output["Value"]) for name, output in template.content["Outputs"].items()}

    assert outputs == {
        "ApiUrl": "<HttpApi.ApiEndpoint>",
        "CustomerBusArn": "<CustomersBus.Arn>",
        "EventBusName": "<EventsBus>",
        "UserPoolId": "<UsersPool>",
        "UserPoolClientId": "<UsersPoolClient>",
        "StateMachineArn": "<WorkflowTrainingRun>",
        "TableName": "<Table>",
    }
