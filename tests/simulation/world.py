"""One schedule's world: real services on in-memory ports, the real state machine, a provider and its hosts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, cast

from tensorant.domain.connections import Connection
from tensorant.domain.errors import Conflict, Ended, TensorantError, Unauthenticated
from tensorant.domain.runs import Run
from tensorant.domain.tokens import TokenMint
from tensorant.ports import Compute, ObjectStore
from tests.simulation.books import Books, Rented
from tests.simulation.definition import Definition, load
from tests.simulation.faults import Crashed, Faults, Faulty
from tests.simulation.functions import Functions
from tests.simulation.hosts import Host, Plan, Refused, Unreachable
from tests.simulation.interpreter import Execution, ExecutionAlreadyExists, Interpreter, Status
from tests.simulation.provider import MarketProvider, Provider, Session, TokenProvider
from tests.simulation.record import WatchedStore
from tests.simulation.schedule import SWEEP_SECONDS, Schedule
from tests.simulation.scheduler import Scheduler
from tests.simulation.services import Pieces, Ports, handlers, services
from tests.simulation.uploads import Flavour
from tests.support.fakes import MemoryObjectStore, MemoryRunLogs, MemorySecrets
from tests.support.worlds import ACCOUNT, AWS, AWS_SETTINGS, ORG, S3, run
from tests.support.worlds import World as Settled

DEFINITION = Path(__file__).parents[2] / "statemachines" / "training_run.asl.json"
OTHER_ACCOUNT = "999988887777"


@cache
def definition() -> Definition:
    return load(DEFINITION.read_text())


@dataclass
class SimulatedClock:
    """The clock of whichever function is running; each may be a little off."""

    scheduler: Scheduler

    def now(self) -> datetime:
        process = self.scheduler.current
        return self.scheduler.moment_at(self.scheduler.now + (process.skew if process else 0.0))


@dataclass
class SimulatedWorkflow:
    """`ports.Workflow` on the interpreter."""

    interpreter: Interpreter

    def start(self, run: Run) -> None:
        request = {"operation": str(run.operation), "run_id": run.id, "number": run.executions}
        try:
            self.interpreter.start(run.execution_name, request)
        except ExecutionAlreadyExists:
            return

    def wake(self, task_token: str) -> None:
        self.interpreter.succeed_task(task_token)

    def beat(self, task_token: str) -> None:
        self.interpreter.heartbeat(task_token)

    def runs(self, run: Run) -> bool | None:
        execution = self.interpreter.executions.get(run.execution_name)
        return None if execution is None else not execution.over


@dataclass
class SimulatedComputes:
    world: World

    def open(self, connection: Connection) -> Compute:
        key = self.world.secrets.read(connection.id)["key"]
        session = Session(self.world.provider, key)
        return self.world.pieces.compute(cast("Compute", Faulty(session, "compute", self.world.faults)))


@dataclass
class SimulatedStorages:
    world: World
    storage: ObjectStore

    def open(self, connection: Connection) -> ObjectStore:
        self.world.secrets.read(connection.id)
        return self.storage


class World:
    """Everything of one schedule. `told` is its timeline, kept only if `recording`."""

    def __init__(self, schedule: Schedule, pieces: Pieces, *, recording: bool = False) -> None:
        self.schedule, self.pieces, self.recording = schedule, pieces, recording
        self.told: list[tuple[float, str]] = []
        self.random = Random(f"{schedule.seed}/world")
        self.scheduler = Scheduler()
        self.faults = Faults(self.random, self.scheduler, schedule.profile, told=self.tell)
        self.record = WatchedStore(self.scheduler, self.faults, self.random)
        self.books = Books(self.scheduler)
        self.hosts: dict[str, Host] = {}
        self.keys = 0
        self.sound: set[tuple[str, int]] = set()
        """Attempts in whose storage a sound archive was ever put."""
        self.given_up: set[str] = set()
        """Runs whose output somebody asked to discard."""
        self.price_raised_at: float | None = None
        self.memory_secrets = MemorySecrets()
        self.storage = MemoryObjectStore(chunk=1 << 20)
        self._provide()
        self._settle()
        self._serve()

    # -- making it ---------------------------------------------------------------------------------------

    def _provide(self) -> None:
        kind = MarketProvider if self.schedule.marketplace else TokenProvider
        self.provider: Provider = kind(
            self.scheduler, self.random, self.faults, self.books, self.schedule.manners
        )
        self.provider.powered_on = self._powered_on
        self.provider.announced = self._announce
        self.provider.watched = self._disposition
        self.provider.prices = {"g6.xlarge": self.schedule.price}

    def _settle(self) -> None:
        settled = Settled(store=self.record)
        settled.settle()
        self.give_key(ACCOUNT)
        self.memory_secrets.write(S3, {"key": "storage"})
        self.runs = [
            replace(run(draft), id=f"run-{number + 1}") for number, draft in enumerate(self.schedule.drafts)
        ]
        self.record.commit(*self.runs)

    def _serve(self) -> None:
        def faulty(port: object, name: str) -> Any:
            return Faulty(port, name, self.faults)

        self.interpreter = Interpreter(
            definition(), self.scheduler, self._invoke, self.random, ended=self._execution_ended
        )
        self.secrets = faulty(self.memory_secrets, "secrets")
        self.ports = Ports(
            store=self.pieces.store(faulty(self.record, "store")),
            computes=SimulatedComputes(self),
            storages=SimulatedStorages(self, faulty(self.storage, "storage")),
            workflow=self.pieces.workflow(faulty(SimulatedWorkflow(self.interpreter), "workflow")),
            logs=faulty(MemoryRunLogs(), "logs"),
            mint=TokenMint(b"deployment-key"),
            clock=SimulatedClock(self.scheduler),
        )
        self.services = services(self.pieces, self.ports)
        self.agents = self.services.agents
        self.functions = Functions(
            self.scheduler, self.faults, handlers(self.pieces, self.ports), self._skew, self.tell
        )

    def _skew(self) -> float:
        return self.random.uniform(-1, 1) * self.schedule.skew_seconds if self.faults.active else 0.0

    # -- running it --------------------------------------------------------------------------------------

    def play(self, act: Callable[[World, Any], object]) -> None:
        """The whole schedule: people and faults, then quiet hours with nothing but the sweep."""
        self.scheduler.after(SWEEP_SECONDS, self._sweep)
        for each in self.schedule.acts:
            self.scheduler.after(each.at, partial(act, self, each))
        self.scheduler.run(self.schedule.faults_end)
        self._calm()
        self.scheduler.run(self.schedule.end)

    def _calm(self) -> None:
        """Faults cease: good credentials of the recorded account, tags back in place."""
        self.tell("-- faults cease --")
        self.faults.active = False
        self.give_key(ACCOUNT)
        for rented in self.books.machines:
            rented.locked = False

    def _sweep(self) -> None:
        self.functions.deliver("Sweep", {}, tries=1)
        self.scheduler.after(SWEEP_SECONDS, self._sweep)

    def tell(self, text: str) -> None:
        if self.recording:
            self.told.append((self.scheduler.now, text))

    # -- wiring ------------------------------------------------------------------------------------------

    def _invoke(self, function: str, payload: dict[str, Any], done: Any) -> None:
        self.tell(f"{payload['run_id']} {function} {_said(payload)}")
        self.functions.invoke(function, payload, done)

    def _execution_ended(self, execution: Execution) -> None:
        self.tell(f"{execution.name} {execution.status} {execution.error or ''}")
        if execution.status in {Status.FAILED, Status.ABORTED} and not self.faults.chance("event_lost", 0.02):
            event = {"run_id": execution.input["run_id"]}
            self.scheduler.after(
                self.random.random() * 10, partial(self.functions.deliver, "ExecutionEnded", event)
            )

    def _announce(self, rented: Rented) -> None:
        """The provider's event of a change: perhaps late, twice or never."""
        self.tell(f"{rented.run_id}#{rented.attempt} {rented.id} is {rented.state} {rented.reason}")
        manners = self.schedule.manners
        if self.faults.chance("event_lost", manners.event_lost):
            return
        event = {"instance": (rented.account, AWS_SETTINGS.region, rented.id)}
        for _ in range(2 if self.faults.chance("event_doubled", manners.event_doubled) else 1):
            delay = self.random.random() * (manners.event_delay_seconds if self.faults.active else 2.0)
            self.scheduler.after(delay, partial(self.functions.deliver, "Ec2Events", event))

    def _powered_on(self, rented: Rented) -> None:
        if rented.stray:
            return
        host = self.hosts.get(rented.id)
        if host is None:
            nonce = f"{rented.id}-{'0' * 32}"
            plan = Plan.drawn(self.random)
            host = self.hosts[rented.id] = Host(rented, plan, self.scheduler, self, nonce)
            self.tell(
                f"{rented.id} will be {plan.fate}, {plan.flavour}, {plan.exit}, trains {plan.train_seconds:.0f} s"
            )
        host.boot()

    def _disposition(self, rented: Rented, call: str) -> str:
        """What our record says of a machine at the moment of a call to its provider."""
        self.tell(f"tensorant calls {call} on {rented.id}")
        for machine in self.record.machines(rented.run_id):
            if machine.attempt == rented.attempt:
                return f"{machine.disposition}"
        return "unrecorded"

    # -- what hosts and people reach ---------------------------------------------------------------------

    def request(self, call: Callable[[], object]) -> object:
        """One request to the agent API. Raises `Refused`, or `Unreachable` where trying again may help."""
        try:
            return call()
        except (Unauthenticated, Ended, Conflict) as error:
            raise Refused(str(error)) from error
        except (TensorantError, Crashed) as error:
            raise Unreachable(str(error)) from error

    def person(self, what: str, call: Callable[[], object]) -> None:
        """One request of a person to the API; what comes back is on the timeline."""

        def work() -> None:
            try:
                call()
                self.tell(f"{what}: accepted")
            except (TensorantError, Crashed) as error:
                self.tell(f"{what}: {type(error).__name__} {error}")

        self.scheduler.spawn(what, work, skew=self._skew())

    def put_object(self, key: str, content: bytes) -> None:
        self.storage.objects[key] = content

    def archive_put(self, run_id: str, attempt: int, flavour: Flavour) -> None:
        if flavour is Flavour.SOUND:
            self.sound.add((run_id, attempt))

    def power_off(self, rented: Rented) -> None:
        self.provider.stop(rented, "host", "Client.InstanceInitiatedShutdown")

    def lose(self, rented: Rented) -> None:
        self.provider.vanish(rented)

    def give_key(self, account: str) -> None:
        """New credentials for the connection; earlier ones stop working."""
        self.keys += 1
        key = f"key-{self.keys}"
        self.provider.keys = {key: account}
        self.memory_secrets.write(AWS, {"key": key})


def _said(payload: dict[str, Any]) -> str:
    known = ("operation", "attempt", "goal", "confirm", "signal")
    return " ".join(f"{name}={payload[name]}" for name in known if name in payload)


__all__ = ["ORG", "World"]
