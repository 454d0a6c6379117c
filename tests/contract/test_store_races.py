"""Writers at the same moment: one wins, and nothing is counted twice or lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from tensorant.adapters.dynamodb.store import DynamoStore
from tensorant.domain.errors import Conflict
from tensorant.ports import Store
from tensorant.services.launch import Launches
from tensorant_local.aws.server import EmbeddedAws
from tests.support.fakes import FakeWorkflow, FixedClock, MemoryStore
from tests.support.tables import create_table
from tests.support.worlds import MEMBER, ORG, RUN, World, machine

WRITERS = 8
TABLE = "records"


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[Any]:
    with EmbeddedAws() as aws:
        yield aws.client("dynamodb")


@pytest.fixture(params=["memory", "dynamodb"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    client = request.getfixturevalue("dynamodb")
    create_table(client, TABLE)
    yield DynamoStore(client, TABLE)
    client.delete_table(TableName=TABLE)


def at_once(action: Callable[[int], object]) -> list[object]:
    """What each of the writers got: an answer, or the conflict that stopped it."""
    ready = Barrier(WRITERS)

    def write(number: int) -> object:
        ready.wait(10)
        try:
            return action(number)
        except Conflict as conflict:
            return conflict

    with ThreadPoolExecutor(WRITERS) as pool:
        return list(pool.map(write, range(WRITERS)))


def test_of_many_writers_of_one_version_one_wins(store: Store) -> None:
    store.commit(machine())
    read = store.machine(RUN, 1)

    answers = at_once(lambda number: store.commit(read.bound(f"{number:032}")))

    assert len([each for each in answers if each is None]) == 1
    assert all(
        each is None or (isinstance(each, Conflict) and each.code == "changed_meanwhile") for each in answers
    )
    assert store.machine(RUN, 1).version == 2


def test_of_many_first_writers_one_wins(store: Store) -> None:
    answers = at_once(lambda number: store.commit(machine(nonce=f"{number:032}")))

    assert len([each for each in answers if each is None]) == 1


def test_no_signal_is_lost(store: Store) -> None:
    assert sorted(map(str, at_once(lambda _: store.signal(RUN)))) == [str(n) for n in range(1, WRITERS + 1)]
    assert store.last_signal(RUN) == WRITERS


def test_many_launches_at_once_make_one_execution(store: Store) -> None:
    memory: Any = store
    World(store=memory).settle().drafted()
    workflow = FakeWorkflow()
    launches = Launches(store, workflow, FixedClock())

    at_once(lambda _: launches.launch(MEMBER, ORG, RUN))

    assert workflow.executions == {"run-1-launch-1"}
    assert store.run(RUN).executions == 1
    assert [fact.kind for fact in store.timeline(RUN)] == ["run_launched"]
