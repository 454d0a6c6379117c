"""What each function is, what it is told, and exactly what it may do. The tables are written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.infra.template import printed

if TYPE_CHECKING:
    from tests.infra.template import Rights, Template

SECRETS = "arn:<AWS::Partition>:secretsmanager:<AWS::Region>:<AWS::AccountId>:secret:tensorant/tensorant/connections/*"
MACHINE = "<WorkflowTrainingRun>"
RUN_LOGS = "<RunLogsGroup.Arn>"
KEY = "<DeploymentKeySecret>"

TABLE: Rights = {
    ("dynamodb:GetItem", "<Table.Arn>"),
    ("dynamodb:Query", "<Table.Arn>"),
    ("dynamodb:PutItem", "<Table.Arn>"),
    ("dynamodb:UpdateItem", "<Table.Arn>"),
    ("dynamodb:Query", "<Table.Arn>/index/gsi1"),
}
READ_SECRETS = ("secretsmanager:GetSecretValue", SECRETS)
READ_KEY = ("secretsmanager:GetSecretValue", KEY)

RIGHTS: dict[str, Rights] = {
    "api": {
        ("states:StartExecution", MACHINE),
        ("s3:PutObject", "<StagingBucket.Arn>/*"),
        ("lambda:InvokeFunction", "<FunctionsDatasetWorker.Arn>"),
        ("logs:GetLogEvents", RUN_LOGS),
    },
    "connections": {
        ("secretsmanager:CreateSecret", SECRETS),
        ("secretsmanager:PutSecretValue", SECRETS),
        ("lambda:InvokeFunction", "<FunctionsConnectionCheck.Arn>"),
    },
    "connection_check": {READ_SECRETS, ("sqs:SendMessage", "<FailedWorkQueue.Arn>")},
    "provider": {READ_SECRETS},
    "dataset_worker": {
        READ_SECRETS,
        ("s3:GetObject", "<StagingBucket.Arn>/*"),
        ("s3:ListBucket", "<StagingBucket.Arn>"),
        ("sqs:SendMessage", "<FailedWorkQueue.Arn>"),
    },
    "agent": {
        READ_SECRETS,
        READ_KEY,
        ("logs:CreateLogStream", RUN_LOGS),
        ("logs:PutLogEvents", RUN_LOGS),
        ("states:SendTaskSuccess", MACHINE),
        ("states:SendTaskHeartbeat", MACHINE),
    },
    "validate_run": {READ_SECRETS},
    "launch_machine": {READ_SECRETS, READ_KEY},
    "await_signal": {("states:SendTaskSuccess", MACHINE)},
    "observe_machine": {READ_SECRETS},
    "verify_adapter": {READ_SECRETS},
    "converge_machine": {READ_SECRETS},
    "ec2_events": {("states:SendTaskSuccess", MACHINE)},
}

PREFIX = "tensorant/tensorant/connections"
ENVIRONMENT: dict[str, dict[str, str]] = {
    "api": {
        "STATE_MACHINE_ARN": MACHINE,
        "STAGING_BUCKET": "<StagingBucket>",
        "RUN_LOG_GROUP": "<RunLogsGroup>",
        "DATASET_WORKER_ARN": "<FunctionsDatasetWorker.Arn>",
        "ADMIN_GROUP": "platform-admins",
    },
    "connections": {
        "SECRET_PREFIX": PREFIX,
        "CONNECTION_CHECK_ARN": "<FunctionsConnectionCheck.Arn>",
        "ADMIN_GROUP": "platform-admins",
    },
    "connection_check": {"SECRET_PREFIX": PREFIX},
    "provider": {"SECRET_PREFIX": PREFIX, "ADMIN_GROUP": "platform-admins"},
    "dataset_worker": {"SECRET_PREFIX": PREFIX, "STAGING_BUCKET": "<StagingBucket>"},
    "agent": {
        "SECRET_PREFIX": PREFIX,
        "DEPLOYMENT_KEY_ARN": KEY,
        "RUN_LOG_GROUP": "<RunLogsGroup>",
        "TRAINER_IMAGE": f"registry.invalid/tensorant-trainer@sha256:{'0' * 64}",
    },
    "validate_run": {"SECRET_PREFIX": PREFIX},
    "launch_machine": {
        "SECRET_PREFIX": PREFIX,
        "DEPLOYMENT_KEY_ARN": KEY,
        "AGENT_URL": "<HttpApi.ApiEndpoint>",
    },
    "await_signal": {},
    "observe_machine": {"SECRET_PREFIX": PREFIX},
    "verify_adapter": {"SECRET_PREFIX": PREFIX},
    "converge_machine": {"SECRET_PREFIX": PREFIX},
    "ec2_events": {},
}

SIZES = {  # seconds, MB; the others have 30 and 512
    "connection_check": (120, 512),
    "provider": (29, 512),
    "dataset_worker": (900, 1769),
    "launch_machine": (60, 512),
    "verify_adapter": (900, 1769),
}

MODULES = sorted(RIGHTS)


def test_there_are_these_functions_and_no_others(template: Template) -> None:
    assert sorted(template.functions()) == MODULES == sorted(ENVIRONMENT)
    assert len(template.resources("AWS::Lambda::Function")) == len(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_a_function_may_do_this_and_nothing_else(template: Template, module: str) -> None:
    function = template.functions()[module]
    group = f"{printed(function['LoggingConfig']['LogGroup']).removesuffix('>')}.Arn>"
    own_log = {("logs:CreateLogStream", group), ("logs:PutLogEvents", group)}

    assert template.rights(function["Role"]) == RIGHTS[module] | TABLE | own_log


@pytest.mark.parametrize("module", MODULES)
def test_a_function_is_told_this_and_nothing_else(template: Template, module: str) -> None:
    told = {
        key: printed(value) for key, value in template.functions()[module]["Environment"]["Variables"].items()
    }

    assert told == {
        "TABLE_NAME": "<Table>",
        "DEPLOYMENT_ID": "tensorant",
        "POWERTOOLS_SERVICE_NAME": f"tensorant-{module.replace('_', '-')}",
        "LOG_LEVEL": "INFO",
        **ENVIRONMENT[module],
    }


@pytest.mark.parametrize("module", MODULES)
def test_size_and_platform(template: Template, module: str) -> None:
    function = template.functions()[module]

    assert function["Handler"] == f"tensorant.handlers.{module}.handler"
    assert (function["Timeout"], function["MemorySize"]) == SIZES.get(module, (30, 512))
    assert function["Architectures"] == ["arm64"]
    assert function["Runtime"] == "python3.13"
    assert "TracingConfig" not in function


def test_each_function_has_a_role_of_its_own(template: Template) -> None:
    roles = [printed(function["Role"]) for function in template.functions().values()]

    assert len(set(roles)) == len(MODULES)


def test_roles_hold_no_managed_and_no_inline_policy(template: Template) -> None:
    for name, role in template.resources("AWS::IAM::Role").items():
        assert "ManagedPolicyArns" not in role, name
        assert "Policies" not in role, name


def test_no_action_is_a_wildcard(template: Template) -> None:
    policies = template.resources("AWS::IAM::Policy").values()
    actions = [
        action
        for policy in policies
        for statement in policy["PolicyDocument"]["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    ]

    assert [action for action in actions if "*" in action] == []


def test_no_function_may_act_on_everything(template: Template) -> None:
    for module, function in template.functions().items():
        resources = {resource for _, resource in template.rights(function["Role"])}
        assert "*" not in resources, module


def test_the_api_reads_no_secret_and_reaches_no_machine(template: Template) -> None:
    actions = {action for action, _ in template.rights(template.functions()["api"]["Role"])}

    assert not {action for action in actions if action.startswith(("secretsmanager:", "ec2:"))}


def test_nobody_may_write_and_read_credentials(template: Template) -> None:
    for module, function in template.functions().items():
        actions = {action for action, _ in template.rights(function["Role"])}
        assert not {"secretsmanager:PutSecretValue", "secretsmanager:GetSecretValue"} <= actions, module


def test_logs_are_kept_for_a_month(template: Template) -> None:
    groups = template.resources("AWS::Logs::LogGroup")
    for module, function in template.functions().items():
        name = printed(function["LoggingConfig"]["LogGroup"]).strip("<>")
        assert groups[name]["RetentionInDays"] == 30, module


def test_accepted_work_is_retried_and_then_kept(template: Template) -> None:
    workers = template.resources("AWS::Lambda::EventInvokeConfig").values()

    assert {printed(worker["FunctionName"]) for worker in workers} == {
        "<FunctionsConnectionCheck>",
        "<FunctionsDatasetWorker>",
    }
    for worker in workers:
        assert worker["MaximumRetryAttempts"] == 2
        assert worker["MaximumEventAgeInSeconds"] == 3600
        assert printed(worker["DestinationConfig"]["OnFailure"]["Destination"]) == "<FailedWorkQueue.Arn>"
