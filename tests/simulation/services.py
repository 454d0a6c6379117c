"""The real services on one world's ports, and the handlers that the workflow and the bus invoke.

`Pieces` makes every part; a deliberate bug is a subclass that makes one of them differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tensorant.domain.machines import Goal
from tensorant.domain.tokens import TokenMint
from tensorant.handlers.tasks import answer, step_of
from tensorant.ports import Clock, Compute, Computes, ObjectStores, RunLogs, Store, Workflow
from tensorant.services.agent import Agents
from tensorant.services.asking import Asker
from tensorant.services.cancel import Cancellations
from tensorant.services.candidates import Choices
from tensorant.services.connection_checks import ConnectionChecker
from tensorant.services.converge import Converger
from tensorant.services.execution_ended import ExecutionEnds
from tensorant.services.launch import Launches, Validator
from tensorant.services.observe import Observer
from tensorant.services.provider_events import ProviderEvents
from tensorant.services.removals import Purges
from tensorant.services.signals import wait
from tensorant.services.sweep import Sweep
from tensorant.services.verify import AdapterVerifier
from tests.simulation.functions import Handler
from tests.support.fakes import MemorySecrets

DEPLOYMENT = "simulated"
AGENT_URL = "https://agent.example.com"


@dataclass(frozen=True)
class Ports:
    store: Store
    computes: Computes
    storages: ObjectStores
    workflow: Workflow
    logs: RunLogs
    mint: TokenMint
    clock: Clock


class Pieces:
    """How the parts are made when nothing is wrong with them."""

    def store(self, store: Store) -> Store:
        return store

    def workflow(self, workflow: Workflow) -> Workflow:
        return workflow

    def compute(self, compute: Compute) -> Compute:
        return compute

    def validator(self, ports: Ports) -> Validator:
        return Validator(ports.store, ports.computes, ports.clock)

    def asker(self, ports: Ports) -> Asker:
        choices = Choices(ports.clock, AGENT_URL, DEPLOYMENT)
        return Asker(ports.store, ports.computes, ports.mint, ports.clock, choices)

    def observer(self, ports: Ports) -> Observer:
        return Observer(ports.store, ports.computes, ports.storages, ports.clock)

    def verifier(self, ports: Ports) -> AdapterVerifier:
        return AdapterVerifier(ports.store, ports.storages, ports.clock)

    def converger(self, ports: Ports) -> Converger:
        return Converger(ports.store, ports.computes, ports.clock)

    def cancellations(self, ports: Ports) -> Cancellations:
        return Cancellations(ports.store, ports.workflow, ports.clock)

    def agents(self, ports: Ports) -> Agents:
        image = "registry.example.com/trainer@sha256:" + "0" * 64
        return Agents(ports.store, ports.storages, ports.workflow, ports.logs, ports.mint, ports.clock, image)

    def sweep(self, ports: Ports) -> Sweep:
        purges = Purges(ports.store, MemorySecrets(), ports.clock)
        return Sweep(ports.store, ports.computes, ports.workflow, ports.clock, purges, DEPLOYMENT)


@dataclass(frozen=True)
class Services:
    """What people and machines call."""

    launches: Launches
    cancellations: Cancellations
    agents: Agents
    checker: ConnectionChecker


def services(pieces: Pieces, ports: Ports) -> Services:
    return Services(
        launches=Launches(ports.store, ports.workflow, ports.clock),
        cancellations=pieces.cancellations(ports),
        agents=pieces.agents(ports),
        checker=ConnectionChecker(ports.store, ports.computes, ports.storages, ports.clock),
    )


def handlers(pieces: Pieces, ports: Ports) -> dict[str, Handler]:
    """By the state machine's names of the functions, and those that the bus invokes."""
    validator, asker, observer = pieces.validator(ports), pieces.asker(ports), pieces.observer(ports)
    verifier, converger, sweep = pieces.verifier(ports), pieces.converger(ports), pieces.sweep(ports)
    events = ProviderEvents(ports.store, ports.workflow, ports.computes, ports.clock)
    ends = ExecutionEnds(ports.store, ports.computes, ports.clock)
    return {
        "ValidateRun": lambda event: answer(validator.claim(step_of(event))),
        "LaunchMachine": lambda event: answer(asker.ask(step_of(event))),
        "ObserveMachine": lambda event: answer(observer.observe(step_of(event))),
        "VerifyAdapter": lambda event: answer(verifier.verify(step_of(event))),
        "ConvergeMachine": partial(_converge, converger),
        "AwaitSignal": partial(_await, ports),
        "Ec2Events": lambda event: events.instance_changed(*event["instance"]),
        "ExecutionEnded": lambda event: ends.ended(event["run_id"]),
        "Sweep": lambda _event: sweep.sweep(),
    }


def _converge(converger: Converger, event: Mapping[str, Any]) -> dict[str, Any]:
    goal = Goal[str(event["goal"]).upper()]
    return answer(converger.toward(step_of(event), goal, confirm=bool(event["confirm"])))


def _await(ports: Ports, event: Mapping[str, Any]) -> None:
    wait(
        str(event["run_id"]),
        str(event["task_token"]),
        seen=int(event["signal"]),
        store=ports.store,
        workflow=ports.workflow,
    )
