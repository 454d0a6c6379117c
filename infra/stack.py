"""The stack: what there is, and what is joined to what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk

from infra.constructs.alarms import Alarms
from infra.constructs.api import HttpFront
from infra.constructs.customers import CustomersBus
from infra.constructs.events import (
    SWEEP_PERIOD,
    BadEnds,
    Ec2News,
    EventBus,
    FactStream,
    SweepSchedule,
)
from infra.constructs.functions import Functions, Surroundings
from infra.constructs.identity import UserPool
from infra.constructs.storage import DeploymentKey, RunLogs, StagingBucket
from infra.constructs.table import Table
from infra.constructs.workers import FailedWork
from infra.constructs.workflow import DESCRIBE, EXTEND, START, WAKE, Workflow
from infra.deployment import PLACEHOLDER_IMAGE

if TYPE_CHECKING:
    from constructs import Construct

    from infra.deployment import Deployment, TokenIssuer

ORGANIZATION = "/v1/organizations/{org_id}"


class TensorantStack(cdk.Stack):
    """One deployment of Tensorant."""

    def __init__(self, scope: Construct, id_: str, *, deployment: Deployment) -> None:
        super().__init__(
            scope,
            id_,
            stack_name=deployment.id,
            description="Tensorant: LoRA fine-tuning on GPUs that your organization already pays for",
        )
        self._deployment = deployment
        self._remind()
        self._table = Table(self, "Table", ephemeral=deployment.ephemeral)
        self._events = EventBus(self, "Events", deployment_id=deployment.id)
        self._customers = CustomersBus(self, "Customers", deployment=deployment)
        self._front = HttpFront(self, "Http", issuer=self._issuer())
        self._functions = Functions(self, "Functions", around=self._surroundings())
        self._workflow = Workflow(self, "Workflow", deployment_id=deployment.id, tasks=self._functions.tasks)
        self._route()
        self._allow()
        self._join()
        self._tell(
            ApiUrl=self._front.url,
            CustomerBusArn=self._customers.arn,
            EventBusName=self._events.name,
            StateMachineArn=self._workflow.arn,
            TableName=self._table.name,
        )

    def _issuer(self) -> TokenIssuer:
        if self._deployment.issuer:
            return self._deployment.issuer
        users = UserPool(self, "Users", deployment=self._deployment)
        self._tell(UserPoolId=users.pool_id, UserPoolClientId=users.client_id)
        return users.issuer

    def _surroundings(self) -> Surroundings:
        ephemeral = self._deployment.ephemeral
        return Surroundings(
            deployment=self._deployment,
            table=self._table,
            staging=StagingBucket(self, "Staging"),
            run_logs=RunLogs(self, "RunLogs", ephemeral=ephemeral),
            deployment_key=DeploymentKey(self, "DeploymentKey", ephemeral=ephemeral),
            events=self._events,
            customers=self._customers,
            agent_url=self._front.url,
        )

    def _route(self) -> None:
        functions = self._functions
        self._front.serve_people(functions.api, "ANY /v1/{proxy+}")
        self._front.serve_people(
            functions.connections,
            f"POST {ORGANIZATION}/connections",
            f"PATCH {ORGANIZATION}/connections/{{connection_id}}",
            f"DELETE {ORGANIZATION}/connections/{{connection_id}}",
            f"POST {ORGANIZATION}/connections/{{connection_id}}/check",
            f"PUT {ORGANIZATION}/connections/{{connection_id}}/credentials",
        )
        self._front.serve_people(
            functions.provider,
            f"GET {ORGANIZATION}/runs/{{run_id}}/review",
            f"GET {ORGANIZATION}/runs/{{run_id}}/adapter",
            f"GET {ORGANIZATION}/dataset-versions/{{version_id}}/preview",
        )
        self._front.serve_machines(functions.agent, "POST /agent/v1/{proxy+}")

    def _allow(self) -> None:
        functions, workflow = self._functions, self._workflow
        workflow.allow(functions.api, START, WAKE)
        workflow.allow(functions.agent, WAKE, EXTEND)
        workflow.allow(functions.await_signal, WAKE)
        workflow.allow(functions.ec2_events, WAKE)
        workflow.allow(functions.sweep, START, WAKE, DESCRIBE)

    def _join(self) -> None:
        functions, failed = self._functions, FailedWork(self, "FailedWork")
        for worker in (
            functions.connection_check,
            functions.dataset_worker,
            functions.ec2_events,
            functions.execution_ended,
        ):
            failed.keep(worker)
        failed.keep(functions.sweep, retries=0, maximum_age=SWEEP_PERIOD)
        Ec2News(self, "Ec2News", target=functions.ec2_events, failed=failed)
        Ec2News(self, "CustomersNews", target=functions.ec2_events, failed=failed, forwarded=self._customers)
        BadEnds(
            self,
            "BadEnds",
            state_machine_arn=self._workflow.arn,
            target=functions.execution_ended,
            failed=failed,
        )
        SweepSchedule(self, "SweepSchedule", target=functions.sweep, failed=failed)
        FactStream(self, "FactStream", table=self._table, target=functions.publish_facts, failed=failed)
        Alarms(self, "Alarms", deployment_id=self._deployment.id, workflow=self._workflow, failed=failed)

    def _remind(self) -> None:
        if self._deployment.trainer_image == PLACEHOLDER_IMAGE:
            cdk.Annotations.of(self).add_warning_v2(
                "tensorant:trainer-image",
                "No trainer image was chosen, so machines cannot start one: "
                "deploy with --context trainerImage=REPOSITORY@sha256:DIGEST",
            )

    def _tell(self, **outputs: str) -> None:
        for name, value in outputs.items():
            cdk.CfnOutput(self, name, value=value)
