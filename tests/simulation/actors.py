"""People: impatient, forgetful, and free to use the provider's and Step Functions' own consoles."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from tensorant.contract import ARCHIVE_NAME, MANIFEST_OBJECT
from tensorant.domain.runs import Operation
from tests.simulation.books import Rented
from tests.simulation.schedule import Act
from tests.simulation.services import DEPLOYMENT
from tests.simulation.uploads import Flavour, built
from tests.simulation.world import OTHER_ACCOUNT, World
from tests.support.worlds import ACCOUNT, AWS, MEMBER, ORG


def act(world: World, act: Act) -> None:
    run_id = world.runs[act.run].id
    world.tell(f"someone: {act.what} {run_id}")
    ACTS[act.what](world, run_id)


def launch(world: World, run_id: str) -> None:
    world.person("launch", lambda: world.services.launches.launch(MEMBER, ORG, run_id))


def cancel(keep: bool | None) -> Callable[[World, str], None]:  # noqa: FBT001 - three-valued
    def act(world: World, run_id: str) -> None:
        cancelling = world.services.cancellations
        if keep is False:
            world.given_up.add(run_id)
        world.person("cancel", lambda: cancelling.cancel(MEMBER, ORG, run_id, keep_output=keep))

    return act


def discard(world: World, run_id: str) -> None:
    world.given_up.add(run_id)
    world.person("discard", lambda: world.services.cancellations.discard(MEMBER, ORG, run_id))


def retry_release(world: World, run_id: str) -> None:
    world.person("retry release", lambda: world.services.cancellations.retry_release(MEMBER, ORG, run_id))


# -- at the provider's console -----------------------------------------------------------------------------


def with_machine(do: Callable[[World, Rented], object]) -> Callable[[World, str], None]:
    def act(world: World, run_id: str) -> None:
        for rented in world.books.of_run(run_id)[-1:]:
            if rented.alive:
                do(world, rented)

    return act


def restart(world: World, rented: Rented) -> None:
    world.provider.start(rented, "user")


def stop_outside(world: World, rented: Rented) -> None:
    world.provider.stop(rented, "user", "User initiated")


def terminate_outside(world: World, rented: Rented) -> None:
    world.provider.terminate(rented, "user", "User initiated")


def vanish(world: World, rented: Rented) -> None:
    world.provider.vanish(rented)


def lock_tags(_world: World, rented: Rented) -> None:
    rented.locked = True


def unlock_tags(_world: World, rented: Rented) -> None:
    rented.locked = False


def stray_machine(world: World, run_id: str) -> None:
    """Somebody copies our tags onto a machine of their own; perhaps those of a run that never was."""
    tags = {
        "tensorant:deployment": DEPLOYMENT,
        "tensorant:run": world.random.choice([run_id, "run-404"]),
        "tensorant:attempt": "1",
    }
    world.provider.boot(world.books.stray(tags, ACCOUNT))


# -- at Step Functions' console ----------------------------------------------------------------------------


def stop_execution(world: World, run_id: str) -> None:
    for name, execution in world.interpreter.executions.items():
        if execution.input["run_id"] == run_id and not execution.over:
            world.interpreter.stop(name)
            return


def redrive(world: World, run_id: str) -> None:
    for name, execution in reversed(world.interpreter.executions.items()):
        if execution.input["run_id"] == run_id and execution.over:
            world.interpreter.redrive(name)
            return


def recover(world: World, run_id: str) -> None:
    """Somebody brings the archive, and an execution is started that verifies it."""
    run = world.record.run(run_id)
    if not run.attempt or run.launched_at is None:
        return
    flavour = world.random.choice([Flavour.SOUND, Flavour.SOUND, Flavour.TRUNCATED])
    archive, beside = built(run.spec, run.attempt, flavour)
    prefix = run.prefix(run.attempt)
    world.put_object(prefix + ARCHIVE_NAME, archive or b"")
    world.put_object(prefix + MANIFEST_OBJECT, beside)
    world.archive_put(run_id, run.attempt, flavour)
    _start(world, run_id, str(Operation.VERIFY_RECOVERED))


def stray_operation(world: World, run_id: str) -> None:
    _start(world, run_id, "no_such_operation")


def _start(world: World, run_id: str, operation: str) -> None:
    number = 1000 + len(world.interpreter.executions)
    name = f"{run_id}-{operation}-{number}"
    world.interpreter.start(name, {"operation": operation, "run_id": run_id, "number": number})


# -- credentials and prices --------------------------------------------------------------------------------


def expire_key(world: World, _run_id: str) -> None:
    world.provider.keys = {}


def rotate_key(world: World, _run_id: str) -> None:
    world.give_key(ACCOUNT)


def other_account(world: World, _run_id: str) -> None:
    world.give_key(OTHER_ACCOUNT)


def check(world: World, _run_id: str) -> None:
    if OTHER_ACCOUNT not in world.provider.keys.values():
        world.person("check", lambda: world.services.checker.check(ORG, AWS))


def raise_price(world: World, _run_id: str) -> None:
    world.price_raised_at = world.scheduler.now
    world.provider.prices = {"g6.xlarge": Decimal("1.6"), "g5.xlarge": Decimal("5.0")}


ACTS: dict[str, Callable[[World, str], None]] = {
    "launch": launch,
    "cancel": cancel(None),
    "cancel_keep": cancel(True),
    "cancel_discard": cancel(False),
    "discard": discard,
    "retry_release": retry_release,
    "restart": with_machine(restart),
    "stop_outside": with_machine(stop_outside),
    "terminate_outside": with_machine(terminate_outside),
    "vanish": with_machine(vanish),
    "lock_tags": with_machine(lock_tags),
    "unlock_tags": with_machine(unlock_tags),
    "stop_execution": stop_execution,
    "redrive": redrive,
    "recover": recover,
    "stray_operation": stray_operation,
    "stray_machine": stray_machine,
    "expire_key": expire_key,
    "rotate_key": rotate_key,
    "other_account": other_account,
    "check": check,
    "raise_price": raise_price,
}
