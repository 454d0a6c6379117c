"""`ports.Bus` on EventBridge: each fact of a run as one event (docs/events.md has the schema)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from tensorant.domain.errors import ProviderFault
from tensorant.domain.timeline import Fact

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

SOURCE = "tensorant"
DETAIL_TYPE = "Tensorant Run Fact"
SCHEMA_VERSION = 1
ENTRIES_AT_ONCE = 10
"""PutEvents takes ten entries (API reference)."""


@dataclass(frozen=True)
class EventBridge:
    client: EventBridgeClient
    bus_name: str

    def publish(self, facts: Sequence[Fact]) -> None:
        for first in range(0, len(facts), ENTRIES_AT_ONCE):
            self._put([self._entry(fact) for fact in facts[first : first + ENTRIES_AT_ONCE]])

    def _put(self, entries: Any) -> None:
        try:
            failed = self.client.put_events(Entries=entries)["FailedEntryCount"]
        except (ClientError, BotoCoreError) as error:
            raise _fault() from error
        if failed:
            raise _fault()

    def _entry(self, fact: Fact) -> dict[str, Any]:
        detail = {
            "version": SCHEMA_VERSION,
            "id": f"{fact.run_id}/{fact.id}",
            "run_id": fact.run_id,
            "attempt": fact.attempt,
            "kind": fact.kind,
            "source": fact.source,
            "at": fact.at.isoformat(),
            "message": fact.message,
        }
        return {
            "EventBusName": self.bus_name,
            "Source": SOURCE,
            "DetailType": DETAIL_TYPE,
            "Time": fact.at,
            "Detail": json.dumps(detail),
        }


def _fault() -> ProviderFault:
    return ProviderFault("events_failed", "EventBridge did not take the events.", mend="Try again.")
