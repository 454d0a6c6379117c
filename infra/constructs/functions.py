"""The Lambda functions: what each one is, what it is told, and exactly what it may do."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra import packaging
from infra.constructs.exceptions import accept
from infra.constructs.rights import Right, give
from infra.constructs.storage import ConnectionSecrets, DeploymentKey, RunLogs, StagingBucket
from infra.constructs.table import Table
from infra.deployment import Deployment


@dataclass(frozen=True)
class Shape:
    """A function's name in the stack, its module under `tensorant.handlers`, and its size."""

    name: str
    module: str
    timeout_seconds: int = 30
    memory_mib: int = 512


API = Shape("Api", "api")
CONNECTIONS = Shape("Connections", "connections")
CONNECTION_CHECK = Shape("ConnectionCheck", "connection_check", timeout_seconds=120)
PROVIDER = Shape("Provider", "provider", timeout_seconds=29)
DATASET_WORKER = Shape("DatasetWorker", "dataset_worker", timeout_seconds=900, memory_mib=1769)
AGENT = Shape("Agent", "agent")
VALIDATE_RUN = Shape("ValidateRun", "validate_run")
LAUNCH_MACHINE = Shape("LaunchMachine", "launch_machine", timeout_seconds=60)
AWAIT_SIGNAL = Shape("AwaitSignal", "await_signal")
OBSERVE_MACHINE = Shape("ObserveMachine", "observe_machine")
VERIFY_ADAPTER = Shape("VerifyAdapter", "verify_adapter", timeout_seconds=900, memory_mib=1769)
CONVERGE_MACHINE = Shape("ConvergeMachine", "converge_machine")
EC2_EVENTS = Shape("Ec2Events", "ec2_events")


@dataclass(frozen=True)
class Surroundings:
    """What functions work with."""

    deployment: Deployment
    table: Table
    staging: StagingBucket
    run_logs: RunLogs
    deployment_key: DeploymentKey
    agent_url: str


class Functions(Construct):
    """All functions; each has one role, and the rights below beside those to the table and its own log."""

    def __init__(self, scope: Construct, id_: str, *, around: Surroundings) -> None:
        super().__init__(scope, id_)
        self._around = around
        self._code = packaging.code(Stack.of(self))
        self._secrets = ConnectionSecrets(Stack.of(self), around.deployment.secret_prefix)

        self.connection_check = self._with_credentials(CONNECTION_CHECK)
        self.dataset_worker = self._with_credentials(
            DATASET_WORKER,
            around.staging.may("s3:GetObject"),
            around.staging.tell_absence(),
            settings={"STAGING_BUCKET": around.staging.name},
        )
        self.api = self._api()
        self.connections = self._connections()
        self.provider = self._with_credentials(
            PROVIDER, settings={"ADMIN_GROUP": around.deployment.admin_group}
        )
        self.agent = self._agent()
        self.await_signal = self._function(AWAIT_SIGNAL)
        self.ec2_events = self._function(EC2_EVENTS)
        self.tasks = {
            "ValidateRunFunction": self._with_credentials(VALIDATE_RUN),
            "LaunchMachineFunction": self._launch_machine(),
            "AwaitSignalFunction": self.await_signal,
            "ObserveMachineFunction": self._with_credentials(OBSERVE_MACHINE),
            "VerifyAdapterFunction": self._with_credentials(VERIFY_ADAPTER),
            "ConvergeMachineFunction": self._with_credentials(CONVERGE_MACHINE),
        }
        """The functions that the state machine calls, by the placeholder that stands for each."""

    def _api(self) -> lambda_.Function:
        around = self._around
        return self._function(
            API,
            around.staging.may("s3:PutObject"),
            around.run_logs.may("logs:GetLogEvents"),
            _invoke(self.dataset_worker),
            settings={
                "STAGING_BUCKET": around.staging.name,
                "RUN_LOG_GROUP": around.run_logs.name,
                "DATASET_WORKER_ARN": self.dataset_worker.function_arn,
                "ADMIN_GROUP": around.deployment.admin_group,
            },
        )

    def _connections(self) -> lambda_.Function:
        """Writes credentials and cannot read them."""
        return self._function(
            CONNECTIONS,
            self._secrets.may(
                "secretsmanager:CreateSecret", "secretsmanager:PutSecretValue"
            ),
            _invoke(self.connection_check),
            settings={
                "SECRET_PREFIX": self._around.deployment.secret_prefix,
                "CONNECTION_CHECK_ARN": self.connection_check.function_arn,
                "ADMIN_GROUP": self._around.deployment.admin_group,
            },
        )

    def _agent(self) -> lambda_.Function:
        around = self._around
        return self._with_credentials(
            AGENT,
            around.deployment_key.may_read(),
            around.run_logs.may("logs:CreateLogStream", "logs:PutLogEvents"),
            settings={
                "DEPLOYMENT_KEY_ARN": around.deployment_key.arn,
                "RUN_LOG_GROUP": around.run_logs.name,
                "TRAINER_IMAGE": around.deployment.trainer_image,
            },
        )

    def _launch_machine(self) -> lambda_.Function:
        return self._with_credentials(
            LAUNCH_MACHINE,
            self._around.deployment_key.may_read(),
            settings={
                "DEPLOYMENT_KEY_ARN": self._around.deployment_key.arn,
                "AGENT_URL": self._around.agent_url,
            },
        )

    def _with_credentials(
        self, shape: Shape, *rights: Right, settings: dict[str, str] | None = None
    ) -> lambda_.Function:
        """A function that reads the credentials of connections."""
        reading = self._secrets.may("secretsmanager:GetSecretValue")
        told = {"SECRET_PREFIX": self._around.deployment.secret_prefix, **(settings or {})}
        return self._function(shape, reading, *rights, settings=told)

    def _function(
        self, shape: Shape, *rights: Right, settings: dict[str, str] | None = None
    ) -> lambda_.Function:
        log = logs.LogGroup(
            self,
            f"{shape.name}Logs",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        function = lambda_.Function(
            self,
            shape.name,
            runtime=packaging.RUNTIME,
            architecture=packaging.ARCHITECTURE,
            code=self._code,
            handler=f"tensorant.handlers.{shape.module}.handler",
            timeout=Duration.seconds(shape.timeout_seconds),
            memory_size=shape.memory_mib,
            log_group=log,
            role=self._role(shape, log, *rights),
            environment={
                "TABLE_NAME": self._around.table.name,
                "DEPLOYMENT_ID": self._around.deployment.id,
                "POWERTOOLS_SERVICE_NAME": f"tensorant-{shape.module.replace('_', '-')}",
                "LOG_LEVEL": "INFO",
                **(settings or {}),
            },
        )
        accept(
            function,
            "AwsSolutions-L1",
            because="docs/adr/0002: the runtime's Python is chosen, not the newest.",
        )
        return function

    def _role(self, shape: Shape, log: logs.LogGroup, *rights: Right) -> iam.Role:
        role = iam.Role(self, f"{shape.name}Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        own_log = Right(("logs:CreateLogStream", "logs:PutLogEvents"), log.log_group_arn)
        give(role, role.add_to_policy, own_log, *self._around.table.use(), *rights)
        return role


def _invoke(function: lambda_.Function) -> Right:
    return Right(("lambda:InvokeFunction",), function.function_arn)
