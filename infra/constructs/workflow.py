"""The state machine, from its file, and who may start and wake its executions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

from aws_cdk import ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.constructs.exceptions import accept
from infra.constructs.rights import Right, give

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_cdk import Duration
    from aws_cdk import aws_cloudwatch as cloudwatch
    from aws_cdk import aws_lambda as lambda_

DEFINITION = Path(__file__).parents[2] / "statemachines" / "training_run.asl.json"

START = "states:StartExecution"
WAKE = "states:SendTaskSuccess"
EXTEND = "states:SendTaskHeartbeat"
DESCRIBE = "states:DescribeExecution"

_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


class Workflow(Construct):
    """The life of a run. `tasks` maps the definition's placeholders to the functions that do its work.

    Raises ValueError if a placeholder has no function, or a function no placeholder.
    """

    def __init__(
        self, scope: Construct, id_: str, *, deployment_id: str, tasks: Mapping[str, lambda_.Function]
    ) -> None:
        super().__init__(scope, id_)
        definition = DEFINITION.read_text(encoding="utf-8")
        check_placeholders(definition, set(tasks))
        self._machine = sfn.StateMachine(
            self,
            "TrainingRun",
            state_machine_type=sfn.StateMachineType.STANDARD,
            definition_body=sfn.DefinitionBody.from_string(definition),
            definition_substitutions={name: function.function_arn for name, function in tasks.items()},
            role=self._role(tasks),
            logs=sfn.LogOptions(
                destination=self._log_group(deployment_id),
                level=sfn.LogLevel.ERROR,
                include_execution_data=False,
            ),
        )
        accept(
            self._machine,
            "AwsSolutions-SF1",
            because="Every event stands in the execution's history already.",
        )
        accept(
            self._machine,
            "AwsSolutions-SF2",
            because="Tracing is off: the timeline in the table tells the story.",
        )

    @property
    def arn(self) -> str:
        return self._machine.state_machine_arn

    def failures(self, period: Duration) -> cloudwatch.Metric:
        """How many executions failed in each period."""
        return self._machine.metric_failed(period=period, statistic="Sum")

    def allow(self, function: lambda_.Function, *actions: str) -> None:
        """Let `function` do the named actions below. One call for each function."""
        if START in actions:
            function.add_environment("STATE_MACHINE_ARN", self.arn)
        rights = [
            Right((DESCRIBE,), self._executions(), "Executions are named after their runs.")
            if action == DESCRIBE
            else Right((action,), self.arn)
            for action in actions
        ]
        # A policy of its own: the machine needs its functions, so none of them may wait for the machine.
        role = cast("iam.IRole", function.role)
        policy = iam.Policy(self, f"{function.node.id}Policy", roles=[role])
        give(policy, policy.add_statements, *rights)

    def _executions(self) -> str:
        return Stack.of(self).format_arn(
            service="states",
            resource="execution",
            resource_name=f"{self._machine.state_machine_name}:*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )

    def _role(self, tasks: Mapping[str, lambda_.Function]) -> iam.Role:
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("states.amazonaws.com"))
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["lambda:InvokeFunction"],
                resources=[function.function_arn for function in tasks.values()],
            )
        )
        accept(
            role,
            "AwsSolutions-IAM5[Resource::*]",
            because="Log delivery is set up by actions that know no resources (Step Functions, CloudWatch logging).",
        )
        return role

    def _log_group(self, deployment_id: str) -> logs.LogGroup:
        return logs.LogGroup(
            self,
            "Logs",
            # Vended logs under this prefix do not fill the account's resource policy.
            log_group_name=f"/aws/vendedlogs/states/{deployment_id}-training-run",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )


def check_placeholders(definition: str, names: set[str]) -> None:
    wanted = set(_PLACEHOLDER.findall(definition))
    if wanted != names:
        raise ValueError(
            f"{DEFINITION.name} and the stack disagree: without a function {sorted(wanted - names)}, "
            f"without a placeholder {sorted(names - wanted)}"
        )
