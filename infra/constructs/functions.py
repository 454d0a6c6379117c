"""The Lambda functions: what each one is, what it is told, and exactly what it may do."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra import packaging
from infra.constructs.compute import OwnAccountCompute, may_assume_roles_of_customers
from infra.constructs.customers import CustomersBus
from infra.constructs.events import EventBus
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
EXECUTION_ENDED = Shape("ExecutionEnded", "execution_ended")
SWEEP = Shape("Sweep", "sweep", timeout_seconds=300)
PUBLISH_FACTS = Shape("PublishFacts", "publish_facts")

RELEASING = {LAUNCH_MACHINE, CONVERGE_MACHINE, EC2_EVENTS, EXECUTION_ENDED, SWEEP}
"""What converges machines toward their goals; launching does, where the answer came too late to be wanted."""

COMPUTE = "aws"
STORAGE = ("s3", "runpod_storage")
"""Kinds of connections, as the ids of connections carry them: what machines are made with, where files lie."""


@dataclass(frozen=True)
class Surroundings:
    """What functions work with."""

    deployment: Deployment
    table: Table
    staging: StagingBucket
    run_logs: RunLogs
    deployment_key: DeploymentKey
    events: EventBus
    customers: CustomersBus
    agent_url: str


class Functions(Construct):
    """All functions; each has one role with the rights below, and may write its own log."""

    def __init__(self, scope: Construct, id_: str, *, around: Surroundings) -> None:
        super().__init__(scope, id_)
        self._around = around
        self._code = packaging.code(Stack.of(self))
        self._secrets = ConnectionSecrets(Stack.of(self), around.deployment.secret_prefix)

        self.connection_check = self._with_credentials(CONNECTION_CHECK, (COMPUTE, *STORAGE))
        self.dataset_worker = self._with_credentials(
            DATASET_WORKER,
            STORAGE,
            around.staging.may("s3:GetObject"),
            around.staging.tell_absence(),
            settings={"STAGING_BUCKET": around.staging.name},
        )
        self.api = self._api()
        self.connections = self._connections()
        self.provider = self._with_credentials(
            PROVIDER, (COMPUTE, *STORAGE), settings={"ADMIN_GROUP": around.deployment.admin_group}
        )
        self.agent = self._agent()
        self.await_signal = self._function(AWAIT_SIGNAL, *around.table.use())
        self.ec2_events = self._with_credentials(EC2_EVENTS, (COMPUTE,))
        self.execution_ended = self._with_credentials(EXECUTION_ENDED, (COMPUTE,))
        self.sweep = self._with_credentials(
            SWEEP,
            (COMPUTE,),
            self._secrets.may_delete(),
            _invoke(self.dataset_worker),
            settings={"DATASET_WORKER_ARN": self.dataset_worker.function_arn},
        )
        self.publish_facts = self._publish_facts()
        self.tasks = {
            "ValidateRunFunction": self._with_credentials(VALIDATE_RUN, (COMPUTE,)),
            "LaunchMachineFunction": self._launch_machine(),
            "AwaitSignalFunction": self.await_signal,
            "ObserveMachineFunction": self._with_credentials(OBSERVE_MACHINE, (COMPUTE, *STORAGE)),
            "VerifyAdapterFunction": self._with_credentials(VERIFY_ADAPTER, STORAGE),
            "ConvergeMachineFunction": self._with_credentials(CONVERGE_MACHINE, (COMPUTE,)),
        }
        """The functions that the state machine calls, by the placeholder that stands for each."""

    def _api(self) -> lambda_.Function:
        around = self._around
        return self._function(
            API,
            *around.table.use(),
            around.staging.may("s3:PutObject"),
            around.run_logs.may("logs:GetLogEvents"),
            _invoke(self.dataset_worker),
            settings={
                "STAGING_BUCKET": around.staging.name,
                "RUN_LOG_GROUP": around.run_logs.name,
                "DATASET_WORKER_ARN": self.dataset_worker.function_arn,
                "ADMIN_GROUP": around.deployment.admin_group,
                "CUSTOMER_BUS_ARN": around.customers.arn,
            },
        )

    def _connections(self) -> lambda_.Function:
        """Writes credentials and cannot read them."""
        return self._function(
            CONNECTIONS,
            *self._around.table.use(),
            self._secrets.may_write(),
            _invoke(self.connection_check),
            settings={
                "SECRET_PREFIX": self._around.deployment.secret_prefix,
                "CONNECTION_CHECK_ARN": self.connection_check.function_arn,
                "ADMIN_GROUP": self._around.deployment.admin_group,
                **self._private_storage(),
            },
        )

    def _agent(self) -> lambda_.Function:
        around = self._around
        return self._with_credentials(
            AGENT,
            STORAGE,
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
            (COMPUTE,),
            self._around.deployment_key.may_read(),
            settings={
                "DEPLOYMENT_KEY_ARN": self._around.deployment_key.arn,
                "AGENT_URL": self._around.agent_url,
            },
        )

    def _publish_facts(self) -> lambda_.Function:
        """Reads facts from the table's stream, and has no right to the table itself."""
        events = self._around.events
        return self._function(
            PUBLISH_FACTS,
            self._around.table.follow(),
            events.may_publish(),
            settings={"EVENT_BUS": events.name},
        )

    def _with_credentials(
        self, shape: Shape, kinds: tuple[str, ...], *rights: Right, settings: dict[str, str] | None = None
    ) -> lambda_.Function:
        """A function that uses the table and the credentials of some kinds of connections."""
        reading = [self._secrets.may_read(kind) for kind in kinds]
        if COMPUTE in kinds:
            reading += [may_assume_roles_of_customers(), *self._own_account(shape)]
        told = {"SECRET_PREFIX": self._around.deployment.secret_prefix, **(settings or {})}
        if not {*STORAGE}.isdisjoint(kinds):
            told |= self._private_storage()
        return self._function(shape, *self._around.table.use(), *reading, *rights, settings=told)

    def _private_storage(self) -> dict[str, str]:
        """Told only where an administrator chose so."""
        return {"ALLOW_PRIVATE_STORAGE": "true"} if self._around.deployment.private_storage else {}

    def _own_account(self, shape: Shape) -> list[Right]:
        """Only where an administrator chose so, and of that what the function does."""
        if not self._around.deployment.same_account_compute:
            return []
        own = OwnAccountCompute()
        rights = own.may_read()
        if shape is LAUNCH_MACHINE:
            rights += own.may_launch()
        return rights + own.may_release() if shape in RELEASING else rights

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
        give(role, role.add_to_policy, own_log, *rights)
        return role


def _invoke(function: lambda_.Function) -> Right:
    return Right(("lambda:InvokeFunction",), function.function_arn)
