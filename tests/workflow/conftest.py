"""The state machine as deployed, with the real functions behind it, and hosts that a test plays."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tensorant.adapters.dynamodb.store import DynamoStore
from tensorant_local.aws.images import SeededAccount, seed_account
from tensorant_local.cloud import PROJECT, LocalCloud
from tests.workflow.accounts import CUSTOMER
from tests.workflow.hosts import PlayedHosts, PlayedMachine

SECONDS = 90
"""The longest that anything may take here; most take a second or two."""
ROW = b'{"messages": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]}\n'


@dataclass(frozen=True)
class World:
    """An organization with everything it needs to launch runs."""

    cloud: LocalCloud
    hosts: PlayedHosts
    account: SeededAccount
    owner: httpx.Client
    stranger: httpx.Client
    organization_id: str
    project_id: str
    connection_id: str
    dataset_version_id: str

    @property
    def path(self) -> str:
        return f"/v1/organizations/{self.organization_id}"

    @property
    def store(self) -> DynamoStore:
        return DynamoStore(self.cloud.client("dynamodb"), self.cloud.outputs["TableName"])

    def draft(self, **changes: Any) -> httpx.Response:
        body = {
            "name": "a run",
            "project_id": self.project_id,
            "connection_id": self.connection_id,
            "dataset_version_id": self.dataset_version_id,
            "base_model": {"repository": "base/model", "revision": "main"},
            "instance_types": ["g6.xlarge"],
            "price_limit_usd_per_hour": "1.50",
            "time_limit_minutes": 60,
            "lora": {"rank": 4, "alpha": 8},
        }
        return self.owner.post(f"{self.path}/runs", json={**body, **changes})

    def launch(self, **changes: Any) -> str:
        run_id = str(ok(self.draft(**changes))["id"])
        ok(self.owner.post(f"{self.path}/runs/{run_id}/launch"))
        return run_id

    def machine(self, run_id: str) -> PlayedMachine:
        """The booted machine of a run, connected."""
        instance_id = self.hosts.of_run(run_id)
        return PlayedMachine(self.cloud.api_url, self.hosts.user_data[instance_id]).connect()

    def status(self, run_id: str) -> dict[str, Any]:
        return ok(self.owner.get(f"{self.path}/runs/{run_id}"))

    def kinds(self, run_id: str) -> list[str]:
        facts = ok(self.owner.get(f"{self.path}/runs/{run_id}/events"))["items"]
        return [fact["kind"] for fact in facts]

    def ended(self, run_id: str) -> dict[str, Any]:
        """The run once its execution is over."""
        self.execution(run_id, lambda status: status != "RUNNING")
        return self.status(run_id)

    def execution(self, run_id: str, good: Callable[[str], bool]) -> str:
        """The status of the run's launch execution, once `good`."""
        arn = self.execution_arn(run_id)
        workflow = self.cloud.client("stepfunctions")

        def status() -> str:
            return str(workflow.describe_execution(executionArn=arn)["status"])

        until(lambda: good(status()))
        return status()

    def execution_arn(self, run_id: str) -> str:
        machine = self.cloud.outputs["StateMachineArn"].replace(":stateMachine:", ":execution:")
        return f"{machine}:{run_id}-launch-1"

    def invoke(self, module: str) -> Any:
        """What a function answers, by its handler's module."""
        functions = self.cloud.client("lambda")
        name = next(
            each["FunctionName"]
            for each in functions.list_functions()["Functions"]
            if each["Handler"] == f"tensorant.handlers.{module}.handler"
        )
        answer = functions.invoke(FunctionName=name, Payload=b"{}")
        assert "FunctionError" not in answer, answer["Payload"].read()
        return json.loads(answer["Payload"].read())

    def listen(self) -> str:
        """An administrator's target on the deployment's bus: a queue, by its URL."""
        bus, events, queues = (
            self.cloud.outputs["EventBusName"],
            self.cloud.client("events"),
            self.cloud.client("sqs"),
        )
        url = str(queues.create_queue(QueueName="facts")["QueueUrl"])
        arn = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        events.put_rule(Name="all", EventBusName=bus, EventPattern=json.dumps({"source": ["tensorant"]}))
        events.put_targets(Rule="all", EventBusName=bus, Targets=[{"Id": "queue", "Arn": arn}])
        return url

    def heard(self, queue_url: str) -> list[dict[str, Any]]:
        """The details of events that have reached a queue since the last time."""
        queues = self.cloud.client("sqs")
        answer = queues.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10)
        return [json.loads(message["Body"])["detail"] for message in answer.get("Messages", [])]

    def instances(self, run_id: str) -> list[dict[str, Any]]:
        """What the provider's own books say of a run."""
        found = self.cloud.client("ec2").describe_instances(
            Filters=[{"Name": "tag:tensorant:run", "Values": [run_id]}]
        )
        return [each for reservation in found["Reservations"] for each in reservation["Instances"]]


def ok(answer: httpx.Response) -> dict[str, Any]:
    assert answer.is_success, answer.text
    body: dict[str, Any] = answer.json()
    return body


def until(done: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < give_up_at, "it took too long"
        time.sleep(0.1)


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    state = tmp_path_factory.mktemp("workflow")
    hosts = PlayedHosts()
    with _cloud(state, hosts) as cloud:
        admin = _person(cloud, "admin@example.com", "platform-admins")
        owner = _person(cloud, "owner@example.com")
        stranger = _person(cloud, "stranger@example.com")
        try:
            yield _world(cloud, hosts, admin, owner, stranger)
        finally:
            for client in (admin, owner, stranger):
                client.close()


def _cloud(state: Path, hosts: PlayedHosts) -> LocalCloud:
    (state / "synth").symlink_to(_cache())
    context = {"customerAccounts": CUSTOMER}
    return LocalCloud(state=state, machines=hosts, context=context, time_scale=0.1, schedules=False)


def _cache() -> Path:
    cache = PROJECT / ".tensorant" / "synth"
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def _person(cloud: LocalCloud, username: str, *groups: str) -> httpx.Client:
    tokens = cloud.create_user(username, "correct horse battery staple A1!", groups)
    headers = {"authorization": f"Bearer {tokens.access_token}"}
    return httpx.Client(base_url=cloud.api_url, headers=headers, timeout=30, trust_env=False)


def _world(
    cloud: LocalCloud, hosts: PlayedHosts, admin: httpx.Client, owner: httpx.Client, stranger: httpx.Client
) -> World:
    account = seed_account(cloud.aws)
    subject = ok(owner.get("/v1/me"))["subject"]
    organization = ok(admin.post("/v1/organizations", json={"name": "Acme", "owner": subject}))["id"]
    path = f"/v1/organizations/{organization}"
    credentials = {
        "access_key_id": account.access_key_id,
        "secret_access_key": account.secret_access_key,
    }
    connections = [
        ok(
            owner.post(
                f"{path}/connections", json={**body, "region": account.region, "credentials": credentials}
            )
        )
        for body in (
            {
                "kind": "aws",
                "name": "gpus",
                "image_id": account.image_id,
                "subnet_ids": [account.subnet_id],
                "security_group_id": account.security_group_id,
            },
            {"kind": "s3", "name": "storage", "bucket": account.bucket, "prefix": "acme"},
        )
    ]
    for connection in connections:
        read = f"{path}/connections/{connection['id']}"
        until(lambda read=read: ok(owner.get(read))["status"] != "checking")
        assert ok(owner.get(read))["status"] == "connected", ok(owner.get(read))["checks"]
    project = ok(
        owner.post(f"{path}/projects", json={"name": "p", "storage_connection_id": connections[1]["id"]})
    )
    return World(
        cloud=cloud,
        hosts=hosts,
        account=account,
        owner=owner,
        stranger=stranger,
        organization_id=organization,
        project_id=project["id"],
        connection_id=connections[0]["id"],
        dataset_version_id=_dataset(owner, path, project["id"]),
    )


def _dataset(owner: httpx.Client, path: str, project_id: str) -> str:
    upload = ok(owner.post(f"{path}/projects/{project_id}/dataset-versions", json={"name": "rows"}))
    httpx.put(upload["upload_url"], content=ROW * 3, trust_env=False).raise_for_status()
    version_id = str(upload["dataset_version"]["id"])
    read = f"{path}/dataset-versions/{version_id}"
    ok(owner.post(f"{read}/complete"))
    until(lambda: ok(owner.get(read))["status"] == "valid")
    return version_id
