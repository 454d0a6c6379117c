"""A template comes to life: every resource works as the template says, and nothing is skipped in silence."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tensorant_local.cloud import LocalCloud
from tensorant_local.provision import MissingPermission, provision
from tensorant_local.provision.resources import Properties, Site
from tensorant_local.template import NotUnderstood, Template

FIXTURES = Path(__file__).parents[1] / "fixtures"
SAMPLE = json.loads((FIXTURES / "templates" / "sample.template.json").read_text())
PASSWORD = "Correct-horse-1-battery"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    state = tmp_path_factory.mktemp("state")
    with LocalCloud(state=state, template=SAMPLE, code=FIXTURES / "functions") as cloud:
        yield cloud


def kept(cloud: LocalCloud, source: str) -> bool:
    key = {"pk": {"S": "kept"}, "sk": {"S": source}}
    table = cloud.outputs["TableName"]
    return "Item" in cloud.client("dynamodb").get_item(TableName=table, Key=key, ConsistentRead=True)


def wait_until_kept(cloud: LocalCloud, source: str) -> None:
    deadline = time.monotonic() + 10
    while not kept(cloud, source):
        assert time.monotonic() < deadline, f"{source} was not kept"
        time.sleep(0.05)


def test_the_table_has_its_index_stream_and_time_to_live(cloud: LocalCloud) -> None:
    dynamodb, name = cloud.client("dynamodb"), cloud.outputs["TableName"]

    table = dynamodb.describe_table(TableName=name)["Table"]
    expiry = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]

    assert [index["IndexName"] for index in table["GlobalSecondaryIndexes"]] == ["gsi1"]
    assert table["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert (expiry["AttributeName"], expiry["TimeToLiveStatus"]) == ("expires_at", "ENABLED")


def test_a_generated_secret_is_as_long_as_asked_and_without_punctuation(cloud: LocalCloud) -> None:
    secret = cloud.client("secretsmanager").get_secret_value(SecretId=cloud.outputs["KeyArn"])["SecretString"]

    assert len(secret) == 64
    assert secret.isalnum()


def test_bucket_and_log_group_are_there(cloud: LocalCloud) -> None:
    cloud.client("s3").put_object(Bucket=cloud.outputs["BucketName"], Key="a", Body=b"x")
    group = cloud.client("logs").describe_log_groups(logGroupNamePrefix=cloud.outputs["LogGroup"])[
        "logGroups"
    ][0]

    assert group["retentionInDays"] == 30


def test_a_person_signs_in_and_reaches_the_function(cloud: LocalCloud) -> None:
    tokens = cloud.create_user("ada@example.org", PASSWORD, ("platform-admins",))

    answer = httpx.get(
        f"{cloud.api_url}/v1/me", headers={"Authorization": f"Bearer {tokens.access_token}"}, trust_env=False
    )

    assert answer.status_code == 200
    told = answer.json()
    assert told["claims"]["cognito:groups"] == "[platform-admins]"
    assert told["claims"]["client_id"] == cloud.outputs["UserPoolClientId"]
    assert told["settings"] == {
        "TABLE_NAME": cloud.outputs["TableName"],
        "KEY_ARN": cloud.outputs["KeyArn"],
        "AGENT_URL": cloud.api_url,
        "MACHINE": cloud.outputs["StateMachineArn"],
    }
    assert told["identity"] == "arn:aws:sts::123456789012:assumed-role/tensorant-Role/tensorant-Web"


def test_the_id_token_is_good_too_and_no_token_is_not(cloud: LocalCloud) -> None:
    tokens = cloud.create_user("grace@example.org", PASSWORD)

    with httpx.Client(base_url=cloud.api_url, trust_env=False) as client:
        assert client.get("/v1/me", headers={"Authorization": tokens.id_token}).status_code == 200
        assert client.get("/v1/me").status_code == 401


def test_the_state_machine_runs_its_function(cloud: LocalCloud) -> None:
    machines = cloud.client("stepfunctions")
    execution = machines.start_execution(
        stateMachineArn=cloud.outputs["StateMachineArn"], input='{"source": "a run"}'
    )["executionArn"]

    wait_until_kept(cloud, "a run")
    deadline = time.monotonic() + 10
    while (state := machines.describe_execution(executionArn=execution))["status"] == "RUNNING":
        assert time.monotonic() < deadline
        time.sleep(0.05)

    assert (state["status"], json.loads(state["output"])) == ("SUCCEEDED", {"kept": "a run"})


def test_a_rule_carries_an_event_to_its_function(cloud: LocalCloud) -> None:
    entry = {"EventBusName": "told", "Source": "sample", "DetailType": "news", "Detail": "{}"}

    cloud.client("events").put_events(Entries=[entry])

    wait_until_kept(cloud, "sample")


def test_a_bus_takes_from_other_accounts_what_its_policy_says(cloud: LocalCloud) -> None:
    def put(account_id: str) -> None:
        role = f"arn:aws:iam::{account_id}:role/partner"
        session = cloud.client("sts").assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
        events = cloud.aws.client(
            "events",
            aws_access_key_id=session["AccessKeyId"],
            aws_secret_access_key=session["SecretAccessKey"],
            aws_session_token=session["SessionToken"],
        )
        bus = "arn:aws:events:us-east-1:123456789012:event-bus/told"
        events.put_events(
            Entries=[{"EventBusName": bus, "Source": "sample", "DetailType": "news", "Detail": "{}"}]
        )

    put("444455556666")
    with pytest.raises(ClientError, match="AccessDeniedException"):
        put("777788889999")


def test_a_schedule_calls_its_function(cloud: LocalCloud) -> None:
    cloud.fire_schedules()

    wait_until_kept(cloud, "aws.events")


def test_a_function_follows_the_tables_changes_that_its_filter_lets_through(cloud: LocalCloud) -> None:
    dynamodb, table = cloud.client("dynamodb"), cloud.outputs["TableName"]
    for name, kind in (("first", "gossip"), ("second", "news")):
        dynamodb.put_item(TableName=table, Item={"pk": {"S": "told"}, "sk": {"S": name}, "kind": {"S": kind}})

    wait_until_kept(cloud, "INSERT second")
    assert not kept(cloud, "INSERT first")


def test_a_function_is_invoked_through_the_lambda_api(cloud: LocalCloud) -> None:
    functions = cloud.client("lambda")

    answer = functions.invoke(FunctionName="tensorant-Keep", Payload=b"{}")

    assert json.load(answer["Payload"]) == {"kept": "direct"}
    config = functions.get_function_event_invoke_config(FunctionName="tensorant-Keep")
    assert config["MaximumRetryAttempts"] == 1


def test_the_start_is_timed(cloud: LocalCloud) -> None:
    assert cloud.startup_seconds.keys() == {"aws", "resources", "total"}


class NoCalls:
    """An AWS that nobody may call: what is tested here is refused before."""

    url = "http://127.0.0.1:1"

    def client(self, service: str) -> Any:
        raise AssertionError(f"{service} was called")


class LambdaAlone(NoCalls):
    """An AWS that takes every function and role."""

    def client(self, service: str) -> Any:
        session = {"AccessKeyId": "ASIA", "SecretAccessKey": "s", "SessionToken": "t"}
        return SimpleNamespace(
            assume_role=lambda **_: {"Credentials": session},
            create_function=lambda **_: {},
        )


class Registered:
    """A Lambda host that notes what it is given."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}

    def register(self, definition: Any) -> None:
        self.definitions[definition.name] = definition


def site(aws: Any) -> Site:
    front = SimpleNamespace(url="http://127.0.0.1:8000")
    return Site("sample", aws, Registered(), front, FIXTURES)  # type: ignore[arg-type]


def provisioned(aws: Any, **resources: Any) -> Site:
    place = site(aws)
    provision(Template.parse({"Resources": resources}), place)
    return place


@pytest.mark.parametrize(
    ("resource", "named"),
    [
        ({"Type": "AWS::EC2::Instance"}, "Thing: the embedded cloud has no AWS::EC2::Instance"),
        (
            {
                "Type": "AWS::S3::BucketPolicy",
                "Properties": {"Bucket": "b", "PolicyDocument": {}, "Colour": "red"},
            },
            r"Thing \(AWS::S3::BucketPolicy\).Colour",
        ),
        (
            {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"ProtocolType": "WEBSOCKET"}},
            "ProtocolType 'WEBSOCKET'",
        ),
        (
            {
                "Type": "AWS::ApiGatewayV2::Api",
                "Properties": {"ProtocolType": "HTTP", "CorsConfiguration": {}},
            },
            "CorsConfiguration",
        ),
        ({"Type": "AWS::S3::BucketPolicy", "Properties": {"PolicyDocument": {}}}, "without Bucket"),
        (
            {"Type": "AWS::Events::Rule", "Properties": {"ScheduleExpression": "cron(0 8 * * ? *)"}},
            r"Thing: schedule cron\(0 8 \* \* \? \*\)",
        ),
        ({"Type": "AWS::Events::Rule", "Properties": {}}, "Thing: a rule without EventPattern"),
        (
            {
                "Type": "AWS::Events::EventBusPolicy",
                "Properties": {
                    "StatementId": "S",
                    "Statement": {
                        "Effect": "Allow",
                        "Condition": {"StringEquals": {"aws:PrincipalOrgID": "o-1"}},
                    },
                },
            },
            "Thing: condition StringEquals on aws:PrincipalOrgID",
        ),
        (
            {
                "Type": "AWS::Lambda::EventSourceMapping",
                "Properties": {"EventSourceArn": "arn:aws:sqs:us-east-1:123456789012:work"},
            },
            "Thing: an event source arn:aws:sqs",
        ),
        (
            {"Type": "AWS::Lambda::Function", "Properties": {"Runtime": "nodejs22.x"}},
            "Thing: runtime nodejs22.x",
        ),
        (
            {
                "Type": "AWS::ApiGatewayV2::Authorizer",
                "Properties": {"JwtConfiguration": {"Issuer": "https://other"}},
            },
            "tokens of https://other",
        ),
    ],
)
def test_what_it_does_not_understand_it_names(resource: dict[str, Any], named: str) -> None:
    with pytest.raises(NotUnderstood, match=named):
        provisioned(NoCalls(), Thing=resource)


def test_a_property_left_over_at_any_depth_is_named() -> None:
    properties = Properties("Rule", {"Targets": [{"Arn": "a"}, {"Arn": "b", "EcsParameters": {}}]})

    for target in properties.each("Targets"):
        target.take("Arn")

    with pytest.raises(NotUnderstood, match=r"Rule.Targets\[1\].EcsParameters"):
        properties.finish()


FUNCTION = {
    "Type": "AWS::Lambda::Function",
    "Properties": {"Runtime": "python3.13", "Handler": "sample.echo", "Role": "arn:role", "Code": {}},
}
INTEGRATION = {
    "Type": "AWS::ApiGatewayV2::Integration",
    "Properties": {"IntegrationType": "AWS_PROXY", "IntegrationUri": {"Fn::GetAtt": ["Echo", "Arn"]}},
}
API = {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"ProtocolType": "HTTP"}}
ROUTE = {
    "Type": "AWS::ApiGatewayV2::Route",
    "Properties": {
        "ApiId": {"Ref": "Api"},
        "RouteKey": "POST /agent/v1/{proxy+}",
        "Target": {"Fn::Join": ["", ["integrations/", {"Ref": "Integration"}]]},
    },
}


def permission(path: str) -> dict[str, Any]:
    source = f"arn:aws:execute-api:us-east-1:123456789012:${{Api}}/*/*{path}"
    return {
        "Type": "AWS::Lambda::Permission",
        "Properties": {
            "Action": "lambda:InvokeFunction",
            "FunctionName": {"Ref": "Echo"},
            "Principal": "apigateway.amazonaws.com",
            "SourceArn": {"Fn::Sub": source},
        },
    }


def test_a_route_whose_function_permits_it_is_made() -> None:
    place = provisioned(
        LambdaAlone(),
        Echo=FUNCTION,
        Integration=INTEGRATION,
        Api=API,
        Route=ROUTE,
        Permission=permission("/agent/v1/{proxy+}"),
    )

    assert [(route.key, route.function) for route in place.routes] == [
        ("POST /agent/v1/{proxy+}", "sample-Echo")
    ]


def test_a_function_that_does_not_permit_its_route_is_named() -> None:
    with pytest.raises(MissingPermission, match="may not invoke sample-Echo"):
        provisioned(
            LambdaAlone(),
            Echo=FUNCTION,
            Integration=INTEGRATION,
            Api=API,
            Route=ROUTE,
            Permission=permission("/other/{proxy+}"),
        )
