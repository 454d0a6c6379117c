from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import httpx
import pytest

from tensorant.contract import Grants, TrainerExit
from tensorant_trainer.errors import TrainerError
from tensorant_trainer.storage import Rights, StorageUnavailableError
from tensorant_trainer.upload import put, upload
from tests.support.fake_agent import FakeAgent
from tests.unit.trainer.test_dataset import DATASET, job, reference

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ARCHIVE_PATH = "/store/adapter.zip"
MANIFEST_PATH = "/store/adapter.manifest.json"


@pytest.fixture
def agent() -> Iterator[FakeAgent]:
    with FakeAgent(spec=job(reference(DATASET))) as agent:
        yield agent


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    archive, manifest = tmp_path / "adapter.zip", tmp_path / "adapter.manifest.json"
    archive.write_bytes(b"PK" * 100_000)
    manifest.write_bytes(b"{}")
    return archive, manifest


class Pauses:
    """Waits for nothing, and remembers how long it should have."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def test_the_archive_goes_first_and_its_manifest_last(agent: FakeAgent, files: tuple[Path, Path]) -> None:
    upload(*files, Rights(agent.grants))

    assert agent.puts == ["adapter.zip", "adapter.manifest.json"]
    assert [agent.objects[path.name] for path in files] == [path.read_bytes() for path in files]
    # S3 takes no chunked bodies, and refuses headers that the URL was not signed for.
    for headers in agent.put_headers:
        assert "Transfer-Encoding" not in headers
        assert "Content-Type" not in headers
        assert "If-None-Match" not in headers


def test_storage_that_is_away_is_asked_again_after_growing_pauses(
    agent: FakeAgent, files: tuple[Path, Path]
) -> None:
    agent.faults[ARCHIVE_PATH].extend([503, 500])
    pauses = Pauses()

    upload(*files, Rights(agent.grants), pause=pauses)

    assert pauses.seconds == [0.5, 1.0]
    assert agent.calls == [f"PUT {ARCHIVE_PATH}"] * 3 + [f"PUT {MANIFEST_PATH}"]


def test_storage_that_stays_away_ends_the_run_before_the_manifest(
    agent: FakeAgent, files: tuple[Path, Path]
) -> None:
    agent.faults[ARCHIVE_PATH].extend([503] * 8)

    with pytest.raises(TrainerError) as caught:
        upload(*files, Rights(agent.grants), pause=Pauses())

    assert caught.value.code is TrainerExit.STORAGE
    assert agent.objects == {}


def test_a_refused_url_is_asked_for_anew_once(agent: FakeAgent, files: tuple[Path, Path]) -> None:
    agent.faults[MANIFEST_PATH].append(403)
    asked: list[Grants] = []

    def ask() -> Grants:
        asked.append(agent.grants())
        return asked[-1]

    upload(*files, Rights(ask), pause=Pauses())

    assert len(asked) == 2
    assert agent.puts == ["adapter.zip", "adapter.manifest.json"]


def test_rights_that_stay_refused_end_the_run(agent: FakeAgent, files: tuple[Path, Path]) -> None:
    agent.faults[ARCHIVE_PATH].extend([403, 403])

    with pytest.raises(TrainerError, match="answered 403 when asked to write adapter") as caught:
        upload(*files, Rights(agent.grants), pause=Pauses())

    assert caught.value.code is TrainerExit.STORAGE
    assert "c0ffee" not in caught.value.message


def test_a_url_signed_for_a_first_write_gets_its_header_and_takes_a_repeat_for_done(
    agent: FakeAgent, files: tuple[Path, Path]
) -> None:
    agent.signed_headers = "host%3Bif-none-match"
    agent.faults[MANIFEST_PATH].append(412)

    upload(*files, Rights(agent.grants), pause=Pauses())

    assert agent.put_headers[0]["If-None-Match"] == "*"
    assert agent.calls == [f"PUT {ARCHIVE_PATH}", f"PUT {MANIFEST_PATH}"]


def test_no_connection_counts_as_away(files: tuple[Path, Path]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: connecting is refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/adapter.zip?X-Amz-Signature=c0ffee"

        with httpx.Client() as http, pytest.raises(StorageUnavailableError) as caught:
            put(http, url, files[0])

    assert caught.value.message == "The storage broke off while we wrote adapter.zip: ConnectError."
