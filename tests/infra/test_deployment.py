"""What an administrator may choose, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.deployment import PLACEHOLDER_IMAGE, ContextError, Deployment, TokenIssuer
from tests.infra.template import printed

if TYPE_CHECKING:
    from tests.infra.template import Template


def test_defaults() -> None:
    nothing: dict[str, str] = {}

    assert Deployment.from_context(nothing.get) == Deployment(
        id="tensorant",
        trainer_image=PLACEHOLDER_IMAGE,
        admin_group="platform-admins",
        issuer=None,
        ephemeral=False,
        same_account_compute=False,
        private_storage=False,
    )


def test_credentials_of_each_deployment_have_a_prefix_of_their_own() -> None:
    assert Deployment(id="acme").secret_prefix == "tensorant/acme/connections"


def test_an_issuer_may_have_several_audiences() -> None:
    chosen = {"oidcIssuer": "https://login.example.com", "oidcAudience": "console, cli"}

    assert Deployment.from_context(chosen.get).issuer == TokenIssuer(
        "https://login.example.com", ("console", "cli")
    )


@pytest.mark.parametrize(
    "chosen",
    [
        {"deployment": "Acme"},
        {"deployment": "acme/other"},
        {"trainerImage": "images.example.com/trainer:latest"},
        {"trainerImage": "images.example.com/trainer@sha256:abc"},
        {"oidcIssuer": "https://login.example.com"},
        {"oidcAudience": "console"},
        {"oidcIssuer": "http://login.example.com", "oidcAudience": "console"},
        {"oidcIssuer": "https://login.example.com", "oidcAudience": " , "},
        {"ephemeral": "yes"},
        {"sameAccountCompute": "perhaps"},
        {"allowPrivateStorage": "1"},
        {"adminGroup": "two words"},
        {"customerAccounts": "11112222333"},
        {"customerAccounts": "111122223333 444455556666"},
        {"customerAccounts": ",".join(f"{number:012d}" for number in range(101))},
    ],
)
def test_what_cannot_work_is_refused_by_name(chosen: dict[str, str]) -> None:
    with pytest.raises(ContextError, match="|".join(chosen)):
        Deployment.from_context(chosen.get)


def test_customer_accounts_are_each_taken_once() -> None:
    chosen = {"customerAccounts": " 444455556666,111122223333 , 444455556666"}

    assert Deployment.from_context(chosen.get).customer_accounts == ("111122223333", "444455556666")


def test_synthesis_needs_no_path_no_home_and_no_credentials(bare_template: Template) -> None:
    assert len(bare_template.functions()) == 16


def test_an_issuer_of_their_own_takes_the_place_of_the_user_pool(bare_template: Template) -> None:
    authorizer = bare_template.only("AWS::ApiGatewayV2::Authorizer")
    kinds = {resource["Type"] for resource in bare_template.content["Resources"].values()}

    assert authorizer["JwtConfiguration"] == {
        "Issuer": "https://login.example.com/acme",
        "Audience": ["tensorant", "tensorant-cli"],
    }
    assert not {kind for kind in kinds if kind.startswith("AWS::Cognito::")}
    assert set(bare_template.content["Outputs"]) == {
        "ApiUrl",
        "CustomerBusArn",
        "EventBusName",
        "StateMachineArn",
        "TableName",
    }


def test_choices_reach_the_functions(bare_template: Template) -> None:
    functions = bare_template.functions()

    def told(module: str, name: str) -> str:
        return printed(functions[module]["Environment"]["Variables"][name])

    assert told("ec2_events", "DEPLOYMENT_ID") == "acme"
    assert told("agent", "TRAINER_IMAGE") == f"images.example.com/trainer@sha256:{'a' * 64}"
    assert {told(module, "ADMIN_GROUP") for module in ("api", "connections", "provider")} == {"gpu-admins"}
    assert told("verify_adapter", "SECRET_PREFIX") == "tensorant/acme/connections"
    reading = [
        right for right in bare_template.rights(functions["verify_adapter"]["Role"]) if "Secret" in right[0]
    ]
    assert {resource.rsplit(":", 1)[1] for _, resource in reading} == {
        "tensorant/acme/connections/conn-s3-*",
        "tensorant/acme/connections/conn-runpod_storage-*",
    }
    assert {bus["Name"] for bus in bare_template.resources("AWS::Events::EventBus").values()} == {
        "acme-events",
        "acme-customers",
    }
    assert {alarm["AlarmName"] for alarm in bare_template.resources("AWS::CloudWatch::Alarm").values()} == {
        "acme-executions-failed",
        "acme-failed-work",
    }


def test_a_throwaway_deployment_goes_with_its_data(bare_template: Template) -> None:
    assert bare_template.only("AWS::DynamoDB::Table")["DeletionProtectionEnabled"] is False
    for kind in ("AWS::DynamoDB::Table", "AWS::SecretsManager::Secret", "AWS::Logs::LogGroup"):
        assert bare_template.attribute(kind, "DeletionPolicy") == {"Delete"}
