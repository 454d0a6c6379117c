"""Hosts that a test plays by hand: it says over the agent API what a real host and trainer would say."""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Condition
from typing import Any

import httpx

from tensorant.contract import JobSpec, Manifest
from tensorant_local.aws.running import MachineHost
from tests.support.archives import adapter_archive, archive_digest, manifest_of

TOKEN = re.compile(r"tt1\.[A-Za-z0-9._-]+")


class PlayedHosts:
    """A `MachineHost` that takes notes and starts nothing; `real` hears of everything too, and may."""

    def __init__(self) -> None:
        self.powered_itself_off: Callable[[str], None] = lambda _: None
        self.user_data: dict[str, str] = {}
        self.boots: list[tuple[str, bool]] = []
        self.off: set[str] = set()
        self.destroyed: set[str] = set()
        self.real: MachineHost | None = None
        self._booted = Condition()

    def boot(self, instance_id: str, user_data: bytes, first: bool) -> None:  # noqa: FBT001 - see MachineHost
        with self._booted:
            self.user_data[instance_id] = user_data.decode()
            self.boots.append((instance_id, first))
            self._booted.notify_all()
        if self.real:
            self.real.boot(instance_id, user_data, first)

    def power_off(self, instance_id: str) -> None:
        self.off.add(instance_id)
        if self.real:
            self.real.power_off(instance_id)

    def destroy(self, instance_id: str) -> None:
        self.destroyed.add(instance_id)
        if self.real:
            self.real.destroy(instance_id)

    def close(self) -> None:
        return

    def of_run(self, run_id: str, *, seconds: float = 120) -> str:
        """The instance that booted for a run."""
        with self._booted:
            assert self._booted.wait_for(lambda: self._find(run_id) is not None, seconds), "no machine booted"
            return self._find(run_id) or ""

    def _find(self, run_id: str) -> str | None:
        return next((each for each, text in self.user_data.items() if run_id in text), None)


@dataclass
class PlayedMachine:
    """One host and its trainer, on the agent API's other side."""

    agent_url: str
    user_data: str
    nonce: str = field(default_factory=lambda: secrets.token_hex(32))
    session: dict[str, Any] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def connect(self) -> PlayedMachine:
        answer = self.exchange()
        answer.raise_for_status()
        self.session = answer.json()
        return self

    def exchange(self) -> httpx.Response:
        found = TOKEN.search(self.user_data)
        assert found is not None
        return self.post("sessions", {"token": found.group(), "nonce": self.nonce})

    def report(self, kind: str, *, source: str = "host", **more: Any) -> httpx.Response:
        event = {
            "source": source,
            "seq": next(self.numbers),
            "at": datetime.now(UTC).isoformat(),
            "type": kind,
        }
        return self.post("events", {"events": [{**event, **more}]})

    def upload(self, *, number: int = 1, damaged: bool = False, **parts: Any) -> None:
        """Put a sound archive and its manifest, unless `parts` ask for a flaw, or damage on the way."""
        grants = self.post("grants", {}).json()
        spec = JobSpec.model_validate(grants["spec"])
        archive = adapter_archive(spec, **parts)
        stated = {**manifest_of(spec, {}), "archive": archive_digest(archive), "upload": number}
        beside = Manifest.model_validate(stated)
        for url, content in (
            (grants["archive_put_url"], archive[:-10] if damaged else archive),
            (grants["manifest_put_url"], beside.model_dump_json().encode()),
        ):
            httpx.put(url, content=content, trust_env=False).raise_for_status()

    def post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        token = self.session.get("session_token")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx.post(
            f"{self.agent_url}/agent/v1/{path}", json=body, headers=headers, timeout=30, trust_env=False
        )
