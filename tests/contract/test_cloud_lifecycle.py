"""What the embedded cloud starts, it ends."""

from __future__ import annotations

import copy
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tensorant_local.cloud import LocalCloud
from tensorant_local.template import NotUnderstood

FIXTURES = Path(__file__).parents[1] / "fixtures"
SAMPLE = json.loads((FIXTURES / "templates" / "sample.template.json").read_text())


class Machines:
    """Computers that only note whether they were connected and closed."""

    def __init__(self) -> None:
        self.powered_itself_off: Callable[[str], None] = lambda _: None
        self.closed = False

    def boot(self, instance_id: str, user_data: bytes, first: bool) -> None: ...  # noqa: FBT001 - the protocol's
    def power_off(self, instance_id: str) -> None: ...
    def destroy(self, instance_id: str) -> None: ...

    def close(self) -> None:
        self.closed = True


def test_no_thread_and_no_process_outlives_it(tmp_path: Path) -> None:
    threads = set(threading.enumerate())
    template = copy.deepcopy(SAMPLE)
    template["Resources"]["Keep"]["Properties"]["Handler"] = "sample.describe"

    with LocalCloud(state=tmp_path, template=template, code=FIXTURES / "functions") as cloud:
        answer = cloud.client("lambda").invoke(FunctionName="tensorant-Keep", Payload=b"{}")
        process = json.load(answer["Payload"])["process"]
        os.kill(process, 0)

    assert set(threading.enumerate()) == threads
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_a_start_that_fails_leaves_nothing_either(tmp_path: Path) -> None:
    threads = set(threading.enumerate())

    with (
        pytest.raises(NotUnderstood),
        LocalCloud(state=tmp_path, template={"Resources": {"A": {"Type": "B"}}}),
    ):
        pass

    assert set(threading.enumerate()) == threads


def test_it_listens_to_its_machines_and_closes_them(tmp_path: Path) -> None:
    machines = Machines()

    with LocalCloud(state=tmp_path, template={"Resources": {}}, machines=machines) as cloud:
        assert machines.powered_itself_off == cloud.aws.instance_powered_itself_off
        assert not machines.closed

    assert machines.closed


def test_it_can_be_started_again(tmp_path: Path) -> None:
    for _ in range(2):
        with LocalCloud(state=tmp_path, template=SAMPLE, code=FIXTURES / "functions") as cloud:
            assert cloud.api_url.startswith("http://127.0.0.1:")
