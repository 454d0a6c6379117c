"""From the packed archive to the end of the attempt: uploads as often as they are wanted, heartbeats in between."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tensorant.contract import BaseModelRef, EventType, Manifest
from tensorant_trainer.archive import pack
from tensorant_trainer.job import deliver
from tensorant_trainer.stop import Stop
from tensorant_trainer.storage import Rights
from tests.support.fake_agent import FakeAgent
from tests.unit.trainer.test_dataset import DATASET, job, reference

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BOTH = ["adapter.zip", "adapter.manifest.json"]


class Told:
    """What the control plane hears; what it wants changes while the trainer waits."""

    def __init__(self, *wanted: int) -> None:
        self.events: list[tuple[EventType, str]] = []
        self.uploads_wanted = 1
        self.stop = Stop()
        self._wanted = list(wanted)

    def event(self, kind: EventType, message: str = "") -> None:
        self.events.append((kind, message))

    def pause(self, _seconds: float) -> None:
        """A heartbeat comes back while the trainer waits; after the last one the attempt is over."""
        if self._wanted:
            self.uploads_wanted = self._wanted.pop(0)
        else:
            self.stop.request("it is over")


@pytest.fixture
def agent() -> Iterator[FakeAgent]:
    with FakeAgent(spec=job(reference(DATASET))) as agent:
        yield agent


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text("# An adapter\n")
    manifest = Manifest(
        run_id="run-1",
        attempt=1,
        status="complete",
        stop_reason="finished",
        steps_done=1,
        steps_total=1,
        base=BaseModelRef(repository="example/base", revision="main"),
        spec_sha256="0" * 64,
        dataset_sha256="0" * 64,
        files={},
    )
    path = tmp_path / "adapter.zip"
    pack(tmp_path, ["README.md"], manifest, path)
    return path


def delivered(agent: FakeAgent, archive: Path, told: Told, *, minutes: float = 60) -> Manifest:
    """The object beside the archive, at the end."""
    until = datetime.now(UTC) + timedelta(minutes=minutes)
    deliver(archive, Rights(agent.grants), told, stop=told.stop, until=until, pause=told.pause)
    return Manifest.model_validate_json(agent.objects["adapter.manifest.json"])


def test_one_upload_is_enough_where_it_arrives_whole(agent: FakeAgent, archive: Path) -> None:
    told = Told()

    manifest = delivered(agent, archive, told)

    assert agent.puts == BOTH
    assert told.events == [(EventType.UPLOADED, ""), (EventType.COMPLETED, "")]
    assert manifest.upload == 1


def test_another_upload_is_told_apart_by_its_manifest(agent: FakeAgent, archive: Path) -> None:
    told = Told(1, 2, 2)

    manifest = delivered(agent, archive, told)

    assert agent.puts == BOTH * 2
    assert told.events[2:] == [(EventType.UPLOADED, "Upload 2."), (EventType.COMPLETED, "")]
    assert manifest.upload == 2
    assert agent.objects["adapter.zip"] == archive.read_bytes()


def test_the_first_upload_is_made_whatever_is_wished(agent: FakeAgent, archive: Path) -> None:
    told = Told()
    told.stop.request("the machine is going down")

    delivered(agent, archive, told, minutes=-1)

    assert agent.puts == BOTH


def test_past_its_time_nothing_is_waited_for(agent: FakeAgent, archive: Path) -> None:
    told = Told(2)

    delivered(agent, archive, told, minutes=-1)

    assert agent.puts == BOTH
