"""Hand-written stand-ins for the ports; each passes the contract suite of its port."""

from tests.support.fakes.compute import FakeCompute, FakeComputes
from tests.support.fakes.files import MemoryObjectStore, MemoryObjectStores, MemoryStaging
from tests.support.fakes.records import MemoryStore
from tests.support.fakes.small import (
    FakeAccounts,
    FakeWorkers,
    FakeWorkflow,
    FixedClock,
    MemoryRunLogs,
    MemorySecrets,
    SequentialIds,
)

__all__ = [
    "FakeAccounts",
    "FakeCompute",
    "FakeComputes",
    "FakeWorkers",
    "FakeWorkflow",
    "FixedClock",
    "MemoryObjectStore",
    "MemoryObjectStores",
    "MemoryRunLogs",
    "MemorySecrets",
    "MemoryStaging",
    "MemoryStore",
    "SequentialIds",
]
