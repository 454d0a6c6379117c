"""What each function is, what it is told, and exactly what it may do. The tables are written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.constructs import functions
from tensorant.domain.connections import ConnectionKind
from tests.infra.template import printed

if TYPE_CHECKING:
    from tests.infra.template import Rights, Template

SECRETS = "arn:<AWS::Partition>:secretsmanager:<AWS::Region>:<AWS::AccountId>:secret:tensorant/tensorant/connections"
MACHINE = "<WorkflowTrainingRun>"
EXECUTIONS = (
    "arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:execution:<WorkflowTrainingRun.Name>:*"
)
FAILED_WORK = ("sqs:SendMessage", "<FailedWorkQueue.Arn>")
RUN_LOGS = "<RunLogsGroup.Arn>"
KEY = "<DeploymentKeySecret>"

TABLE: Rights = {
    ("dynamodb:GetItem", "<Table.Arn>"),
    ("dynamodb:Query", "<Table.Arn>"),
    ("dynamodb:PutItem", "<Table.Arn>"),
    ("dynamodb:UpdateItem", "<Table.Arn>"),
    ("dynamodb:ConditionCheckItem", "<Table.Arn>"),
    ("dynamodb:Query", "<Table.Arn>/index/gsi1"),
    ("dynamodb:Query", "<Table.Arn>/index/gsi2"),
}
READ_AWS = ("secretsmanager:GetSecretValue", f"{SECRETS}/conn-aws-*")
ASSUME = ("sts:AssumeRole", "arn:<AWS::Partition>:iam::*:role/tensorant-*")
READ_STORAGE: Rights = {
    ("secretsmanager:GetSecretValue", f"{SECRETS}/conn-s3-*"),
    ("secretsmanager:GetSecretValue", f"{SECRETS}/conn-runpod_storage-*"),
}
READ_KEY = ("secretsmanager:GetSecretValue", KEY)

RIGHTS: dict[str, Rights] = {
    "api": {
        *TABLE,
        ("states:StartExecution", MACHINE),
        ("states:SendTaskSuccess", MACHINE),
        ("s3:PutObject", "<StagingBucket.Arn>/*"),
        ("lambda:InvokeFunction", "<FunctionsDatasetWorker.Arn>"),
        ("logs:GetLogEvents", RUN_LOGS),
    },
    "connections": {
        *TABLE,
        ("secretsmanager:CreateSecret", f"{SECRETS}/*"),
        ("secretsmanager:PutSecretValue", f"{SECRETS}/*"),
        ("lambda:InvokeFunction", "<FunctionsConnectionCheck.Arn>"),
    },
    "connection_check": {*TABLE, READ_AWS, ASSUME, *READ_STORAGE, FAILED_WORK},
    "provider": {*TABLE, READ_AWS, ASSUME, *READ_STORAGE},
    "dataset_worker": {
        *TABLE,
        *READ_STORAGE,
        ("s3:GetObject", "<StagingBucket.Arn>/*"),
        ("s3:ListBucket", "<StagingBucket.Arn>"),
        FAILED_WORK,
    },
    "agent": {
        *TABLE,
        *READ_STORAGE,
        READ_KEY,
        ("logs:CreateLogStream", RUN_LOGS),
        ("logs:PutLogEvents", RUN_LOGS),
        ("states:SendTaskSuccess", MACHINE),
        ("states:SendTaskHeartbeat", MACHINE),
    },
    "validate_run": {*TABLE, READ_AWS, ASSUME},
    "launch_machine": {*TABLE, READ_AWS, ASSUME, READ_KEY},
    "await_signal": {*TABLE, ("states:SendTaskSuccess", MACHINE)},
    "observe_machine": {*TABLE, READ_AWS, ASSUME, *READ_STORAGE},
    "verify_adapter": {*TABLE, *READ_STORAGE},
    "converge_machine": {*TABLE, READ_AWS, ASSUME},
    "ec2_events": {*TABLE, READ_AWS, ASSUME, ("states:SendTaskSuccess", MACHINE), FAILED_WORK},
    "execution_ended": {*TABLE, READ_AWS, ASSUME, FAILED_WORK},
    "sweep": {
        *TABLE,
        READ_AWS,
        ASSUME,
        ("secretsmanager:DeleteSecret", f"{SECRETS}/*"),
        ("lambda:InvokeFunction", "<FunctionsDatasetWorker.Arn>"),
        ("states:StartExecution", MACHINE),
        ("states:SendTaskSuccess", MACHINE),
        ("states:DescribeExecution", EXECUTIONS),
        FAILED_WORK,
    },
    "publish_facts": {
        ("dynamodb:DescribeStream", "<Table.StreamArn>"),
        ("dynamodb:GetRecords", "<Table.StreamArn>"),
        ("dynamodb:GetShardIterator", "<Table.StreamArn>"),
        ("dynamodb:ListStreams", "<Table.StreamArn>"),
        ("events:PutEvents", "<EventsBus.Arn>"),
        FAILED_WORK,
    },
}

PREFIX = "tensorant/tensorant/connections"
ENVIRONMENT: dict[str, dict[str, str]] = {
    "api": {
        "STATE_MACHINE_ARN": MACHINE,
        "STAGING_BUCKET": "<StagingBucket>",
        "RUN_LOG_GROUP": "<RunLogsGroup>",
        "DATASET_WORKER_ARN": "<FunctionsDatasetWorker.Arn>",
        "ADMIN_GROUP": "platform-admins",
        "CUSTOMER_BUS_ARN": "<CustomersBus.Arn>",
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
    "ec2_events": {"SECRET_PREFIX": PREFIX},
    "execution_ended": {"SECRET_PREFIX": PREFIX},
    "sweep": {
        "SECRET_PREFIX": PREFIX,
        "STATE_MACHINE_ARN": MACHINE,
        "DATASET_WORKER_ARN": "<FunctionsDatasetWorker.Arn>",
    },
    "publish_facts": {"EVENT_BUS": "<EventsBus>"},
}

SIZES = {  # seconds, MB; the others have 30 and 512
    "connection_check": (120, 512),
    "provider": (29, 512),
    "dataset_worker": (900, 1769),
    "launch_machine": (60, 512),
    "sweep": (300, 512),
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

    assert template.rights(function["Role"]) == RIGHTS[module] | own_log


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


def test_no_function_can_assume_a_role_of_ours(template: Template) -> None:
    """CloudFormation names them after the stack, `tensorant-…`: a person can name one as a connection's role."""
    roles = template.resources("AWS::IAM::Role")
    trusted = [
        statement["Principal"]
        for role in roles.values()
        for statement in role["AssumeRolePolicyDocument"]["Statement"]
    ]

    assert {kind for principal in trusted for kind in principal} == {"Service"}


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


def test_each_kind_of_connection_has_a_name_in_the_rights() -> None:
    # functions/tensorant/services/connections.py names a connection, and with it its secret, by its kind
    assert {functions.COMPUTE, *functions.STORAGE} == set(ConnectionKind)


def test_private_storage_is_allowed_only_where_an_administrator_chose_so(bare_template: Template) -> None:
    told = {
        module
        for module, function in bare_template.functions().items()
        if function["Environment"]["Variables"].get("ALLOW_PRIVATE_STORAGE") == "true"
    }

    assert told == {
        "agent",
        "connection_check",
        "connections",
        "dataset_worker",
        "observe_machine",
        "provider",
        "verify_adapter",
    }


@pytest.mark.parametrize(
    ("worker", "retries", "seconds"),
    [
        ("ConnectionCheck", 2, 3600),
        ("DatasetWorker", 2, 3600),
        ("Ec2Events", 2, 3600),
        ("ExecutionEnded", 2, 3600),
        ("Sweep", 0, 300),  # the next one comes
    ],
)
def test_accepted_work_is_retried_and_then_kept(
    template: Template, worker: str, retries: int, seconds: int
) -> None:
    settings = template.resources("AWS::Lambda::EventInvokeConfig")
    setting = settings[f"FailedWork{worker}Invocations"]

    assert len(settings) == 5
    assert printed(setting["FunctionName"]) == f"<Functions{worker}>"
    assert setting["MaximumRetryAttempts"] == retries
    assert setting["MaximumEventAgeInSeconds"] == seconds
    assert printed(setting["DestinationConfig"]["OnFailure"]["Destination"]) == "<FailedWorkQueue.Arn>"
