"""`ports.Store` on one DynamoDB table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from tensorant.adapters.dynamodb import keys
from tensorant.adapters.dynamodb.items import body, marshalled, plain, unmarshalled, value
from tensorant.contract import Event
from tensorant.domain.connections import Catalog, Connection
from tensorant.domain.errors import Conflict, NotFound, ProviderFault, Throttled
from tensorant.domain.identity import Member, Organization
from tensorant.domain.machines import Machine
from tensorant.domain.projects import DatasetContent, DatasetVersion, Project
from tensorant.domain.runs import Progress, Run
from tensorant.domain.timeline import Fact
from tensorant.ports import Entity

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")

CONDITION_FAILED = "ConditionalCheckFailed"
IN_CONFLICT = "TransactionConflict"
THROTTLES = {"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"}


@dataclass(frozen=True)
class DynamoStore:
    """The record. Every write that can race is conditional on a version."""

    client: DynamoDBClient
    table: str

    # -- writing -----------------------------------------------------------------------------------------

    def commit(self, *changed: Entity, facts: Sequence[Fact] = (), unchanged: Sequence[Entity] = ()) -> None:
        writes = [
            *(self._put(entity) for entity in changed),
            *(self._put_fact(fact, number) for number, fact in enumerate(facts)),
            *(self._require(entity) for entity in unchanged),
        ]
        try:
            self.client.transact_write_items(TransactItems=writes)  # type: ignore[arg-type]
        except self.client.exceptions.TransactionCanceledException as error:
            raise _cancelled(error) from error
        except (ClientError, BotoCoreError) as error:
            raise _translated(error) from error

    def _put(self, entity: Entity) -> dict[str, Any]:
        item = {
            **keys.of(entity),
            **keys.index_of(entity),
            **keys.open_index_of(entity),
            "kind": type(entity).__name__,
            "version": entity.version + 1,
            "body": body(entity),
        }
        put: dict[str, Any] = {"TableName": self.table, "Item": marshalled(item)}
        if entity.version == 0:
            put["ConditionExpression"] = "attribute_not_exists(pk)"
        else:
            put["ConditionExpression"] = "version = :version"
            put["ExpressionAttributeValues"] = marshalled({":version": entity.version})
        return {"Put": put}

    def _require(self, entity: Entity) -> dict[str, Any]:
        check = {
            "TableName": self.table,
            "Key": marshalled(keys.of(entity)),
            "ConditionExpression": "version = :version",
            "ExpressionAttributeValues": marshalled({":version": entity.version}),
        }
        return {"ConditionCheck": check}

    def _put_fact(self, fact: Fact, number: int) -> dict[str, Any]:
        item = {
            **keys.fact(fact),
            "gsi1pk": keys.timeline_index(fact.run_id),
            "gsi1sk": f"{time.time_ns():020d}#{number:02d}",
            "kind": "Fact",
            "body": body(fact),
        }
        return {
            "Put": {
                "TableName": self.table,
                "Item": marshalled(item),
                "ConditionExpression": "attribute_not_exists(pk)",
            }
        }

    def save_progress(self, progress: Progress) -> None:
        self._call("put_item", Item=marshalled({**keys.progress(progress.run_id), "body": body(progress)}))

    def save_terminal_event(self, run_id: str, attempt: int, event: Event) -> None:
        item = {
            **keys.terminal_event(run_id, attempt),
            "body": event.model_dump(mode="json", exclude_none=True),
        }
        try:
            self._call("put_item", Item=marshalled(item), ConditionExpression="attribute_not_exists(pk)")
        except Conflict:
            return

    def signal(self, run_id: str) -> int:
        answer = self._call(
            "update_item",
            Key=marshalled(keys.signals(run_id)),
            UpdateExpression="ADD signals :one",
            ExpressionAttributeValues=marshalled({":one": 1}),
            ReturnValues="UPDATED_NEW",
        )
        return int(unmarshalled(answer["Attributes"])["signals"])

    def wait_with(self, run_id: str, task_token: str) -> None:
        self._call(
            "update_item",
            Key=marshalled(keys.signals(run_id)),
            UpdateExpression="SET task_token = :token",
            ExpressionAttributeValues=marshalled({":token": task_token}),
        )

    # -- reading -----------------------------------------------------------------------------------------

    def organization(self, organization_id: str) -> Organization:
        return self._get(Organization, keys.organization(organization_id), "organization", organization_id)

    def member(self, organization_id: str, subject: str) -> Member | None:
        item = self._item(keys.member(organization_id, subject))
        return value(Member, item) if item else None

    def memberships(self, subject: str) -> Sequence[Member]:
        return self._listed(Member, index=keys.subject_index(subject))

    def connection(self, organization_id: str, connection_id: str) -> Connection:
        return self._get(
            Connection, keys.connection(organization_id, connection_id), "connection", connection_id
        )

    def connections(self, organization_id: str) -> Sequence[Connection]:
        return self._listed(Connection, pk=f"ORG#{organization_id}", sk="CONNECTION#")

    def catalog(self, connection_id: str) -> Catalog | None:
        item = self._item(keys.catalog(connection_id))
        return value(Catalog, item) if item else None

    def project(self, organization_id: str, project_id: str) -> Project:
        return self._get(Project, keys.project(organization_id, project_id), "project", project_id)

    def projects(self, organization_id: str) -> Sequence[Project]:
        return self._listed(Project, pk=f"ORG#{organization_id}", sk="PROJECT#")

    def dataset_version(self, organization_id: str, version_id: str) -> DatasetVersion:
        key = keys.dataset(organization_id, version_id)
        return self._get(DatasetVersion, key, "dataset version", version_id)

    def dataset_versions(self, organization_id: str, project_id: str) -> Sequence[DatasetVersion]:
        found = self._listed(DatasetVersion, index=keys.project_index(project_id))
        return [each for each in found if each.organization_id == organization_id]

    def dataset_content(self, project_id: str, sha256: str) -> DatasetContent | None:
        item = self._item(keys.dataset_content(project_id, sha256))
        return value(DatasetContent, item) if item else None

    def open_dataset_versions(self) -> Sequence[DatasetVersion]:
        return self._listed(DatasetVersion, open_index=keys.OPEN_DATASETS)

    def run(self, run_id: str) -> Run:
        return self._get(Run, keys.run(run_id), "run", run_id)

    def runs(self, organization_id: str) -> Sequence[Run]:
        return self._listed(Run, index=keys.runs_index(organization_id), newest_first=True)

    def machine(self, run_id: str, attempt: int) -> Machine:
        return self._get(Machine, keys.machine(run_id, attempt), "attempt", f"{run_id}/{attempt}")

    def machines(self, run_id: str) -> Sequence[Machine]:
        return self._listed(Machine, pk=f"RUN#{run_id}", sk="MACHINE#")

    def open_machines(self) -> Sequence[Machine]:
        return self._listed(Machine, open_index=keys.OPEN_MACHINES)

    def compute_connections(self) -> Sequence[Connection]:
        return self._listed(Connection, open_index=keys.COMPUTE_CONNECTIONS)

    def removed_connections(self) -> Sequence[Connection]:
        return self._listed(Connection, open_index=keys.REMOVED_CONNECTIONS)

    def runs_under_way(self) -> Sequence[Run]:
        return self._listed(Run, open_index=keys.RUNS_UNDER_WAY)

    def machine_by_instance(self, account_id: str, region: str, instance_id: str) -> Machine | None:
        found = self._listed(Machine, index=keys.instance_index(account_id, region, instance_id))
        return found[0] if found else None

    def timeline(self, run_id: str) -> Sequence[Fact]:
        return self._listed(Fact, index=keys.timeline_index(run_id))

    def progress(self, run_id: str) -> Progress | None:
        item = self._item(keys.progress(run_id))
        return value(Progress, item) if item else None

    def terminal_event(self, run_id: str, attempt: int) -> Event | None:
        item = self._item(keys.terminal_event(run_id, attempt))
        return Event.model_validate(plain(item["body"])) if item else None

    def last_signal(self, run_id: str) -> int:
        item = self._item(keys.signals(run_id)) or {}
        return int(item.get("signals", 0))

    def waiter(self, run_id: str) -> str | None:
        item = self._item(keys.signals(run_id)) or {}
        token = item.get("task_token")
        return str(token) if token else None

    # -- plumbing ----------------------------------------------------------------------------------------

    def _get(self, kind: type[T], key: keys.Key, what: str, identifier: str) -> T:
        item = self._item(key)
        if item is None:
            raise NotFound(what, identifier)
        return value(kind, item)

    def _item(self, key: keys.Key) -> dict[str, Any] | None:
        answer = self._call("get_item", Key=marshalled(key), ConsistentRead=True)
        return unmarshalled(answer["Item"]) if "Item" in answer else None

    def _listed(
        self,
        kind: type[T],
        *,
        pk: str = "",
        sk: str = "",
        index: str = "",
        open_index: str = "",
        newest_first: bool = False,
    ) -> list[T]:
        """All pages of one key's items, in the order of their sort keys."""
        query: dict[str, Any] = {"ScanIndexForward": not newest_first}
        if index or open_index:
            name = keys.INDEX if index else keys.OPEN_INDEX
            query |= {"IndexName": name, "KeyConditionExpression": f"{name}pk = :pk"}
            query["ExpressionAttributeValues"] = marshalled({":pk": index or open_index})
        else:
            query |= {"KeyConditionExpression": "pk = :pk AND begins_with(sk, :sk)", "ConsistentRead": True}
            query["ExpressionAttributeValues"] = marshalled({":pk": pk, ":sk": sk})
        found: list[T] = []
        while True:
            answer = self._call("query", **query)
            found += [value(kind, unmarshalled(item)) for item in answer["Items"]]
            if "LastEvaluatedKey" not in answer:
                return found
            query["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _call(self, operation: str, **request: Any) -> Any:
        try:
            return getattr(self.client, operation)(TableName=self.table, **request)
        except (ClientError, BotoCoreError) as error:
            raise _translated(error) from error


def _cancelled(error: ClientError) -> Exception:
    """Why a transaction was not written. Source: TransactWriteItems, cancellation reasons."""
    reasons: Any = error.response.get("CancellationReasons", [])
    codes = {reason.get("Code") for reason in reasons}
    if codes & {CONDITION_FAILED, IN_CONFLICT}:
        return _changed()
    return _translated(error)


def _changed() -> Conflict:
    return Conflict(
        "changed_meanwhile", "The record changed between reading and writing.", mend="Read it and try again."
    )


def _translated(error: ClientError | BotoCoreError) -> Exception:
    if not isinstance(error, ClientError):
        return ProviderFault("record_unreachable", "The table did not answer.", mend="Try again.")
    code = error.response["Error"]["Code"]
    if code in {"ConditionalCheckFailedException", "TransactionConflictException"}:
        return _changed()
    if code in THROTTLES:
        return Throttled("record_throttled", "The table is throttled.", mend="Try again in a moment.")
    return ProviderFault("record_failed", f"The table answered {code}.", mend="Try again.")
