"""What happens to machines at their provider is soon on the timeline, whichever account and Region they are in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tensorant.domain.costs import cost
from tensorant.domain.machines import Seen
from tensorant.domain.timeline import Fact
from tests.support import worlds
from tests.workflow.accounts import CUSTOMER, Elsewhere
from tests.workflow.conftest import World, ok, until

SOON = timedelta(seconds=5)
"""From the order to the fact, by their own times (issue text). Functions are warm by then: each run boots first."""
BY_USER = "Client.UserInitiatedShutdown: User initiated shutdown"
ENDING = {"machine_shutting_down", "machine_released"}


def booting(world: World, run_id: str) -> None:
    world.hosts.of_run(run_id)


def connected(world: World, run_id: str) -> None:
    world.machine(run_id)


def training(world: World, run_id: str) -> None:
    machine = world.machine(run_id)
    machine.report("started", source="trainer")
    machine.report("step", source="trainer", step=1, steps_total=9, loss=3.0)


def retained(world: World, run_id: str) -> None:
    machine = world.machine(run_id)
    machine.report("step", source="trainer", step=1, steps_total=9, loss=3.0)
    machine.report("trainer_exited", exit_code=137)
    world.ended(run_id)


PHASES: list[Callable[[World, str], None]] = [booting, connected, training, retained]


def terminated(world: World, run_id: str, ec2: Any, instance_id: str) -> tuple[Fact, datetime]:
    """The first fact of an instance's end, and when its owner ordered it."""
    ordered_at = datetime.now(UTC)
    ec2.terminate_instances(InstanceIds=[instance_id])

    def ends() -> Sequence[Fact]:
        return [fact for fact in world.store.timeline(run_id) if fact.kind in ENDING]

    until(lambda: bool(ends()))
    return ends()[0], ordered_at


@pytest.mark.parametrize("reach", PHASES)
def test_a_machine_destroyed_outside_is_soon_on_the_timeline_with_its_reason(
    world: World, reach: Callable[[World, str], None]
) -> None:
    run_id = world.launch()
    reach(world, run_id)
    (instance,) = world.instances(run_id)

    fact, ordered_at = terminated(world, run_id, world.cloud.client("ec2"), instance["InstanceId"])

    assert fact.message == BY_USER
    assert fact.at - ordered_at < SOON
    until(lambda: world.status(run_id)["machine"]["state"] == "released")


def test_a_machine_stopped_outside_needs_recovery_and_its_disk_stays_on_the_books(world: World) -> None:
    run_id = world.launch()
    training(world, run_id)
    (instance,) = world.instances(run_id)
    world.cloud.client("ec2").stop_instances(InstanceIds=[instance["InstanceId"]])

    ended = world.ended(run_id)

    assert (ended["outcome"], ended["run"]["failure"]["code"]) == ("needs_recovery", "machine_stopped")
    assert BY_USER in ended["run"]["failure"]["message"]
    assert (ended["machine"]["state"], ended["machine"]["confirmed_gone_at"]) == ("retained", None)
    machine = world.store.machine(run_id, 1)
    assert machine in world.store.open_machines()  # what the sweep goes by
    now = datetime.now(UTC)
    one_day = cost(machine, now=now + timedelta(days=1)) - cost(machine, now=now)
    assert abs(one_day - machine.quote.disk_usd_per_hour * 24) <= Decimal("0.0001")  # and no GPU
    assert one_day > 0


# -- another account ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def customer(world: World) -> Elsewhere:
    """An account of its own that has deployed the connector."""
    account = Elsewhere(world.cloud.aws, CUSTOMER)
    account.forward(world.cloud.outputs["CustomerBusArn"])
    return account


@pytest.fixture(scope="module")
def foreign_run(world: World, customer: Elsewhere) -> str:
    """A run on a machine in the customer's account."""
    seeded = customer.seeded()
    body = {
        "kind": "aws",
        "name": "their GPUs",
        "region": seeded.region,
        "image_id": seeded.image_id,
        "subnet_ids": [seeded.subnet_id],
        "security_group_id": seeded.security_group_id,
        "credentials": {
            "access_key_id": seeded.access_key_id,
            "secret_access_key": seeded.secret_access_key,
        },
    }
    connection_id = ok(world.owner.post(f"{world.path}/connections", json=body))["id"]
    read = f"{world.path}/connections/{connection_id}"
    until(lambda: ok(world.owner.get(read))["status"] == "connected")
    run_id = world.launch(connection_id=connection_id)
    training(world, run_id)
    return run_id


def test_a_retirement_in_a_customers_account_is_a_warning_of_its_run(
    world: World, customer: Elsewhere, foreign_run: str
) -> None:
    machine = world.store.machine(foreign_run, 1)
    assert machine.account_id == CUSTOMER

    for _ in range(2):
        customer.schedule_retirement(machine.instance_id or "")
    until(lambda: bool(world.status(foreign_run)["warnings"]))

    (warning,) = world.status(foreign_run)["warnings"]
    assert warning["kind"] == "machine_warning"
    assert f"stop the machine {machine.instance_id} from 2036-08-01 09:00 UTC on" in warning["message"]
    assert world.status(foreign_run)["outcome"] is None


def test_what_a_customer_terminates_in_its_own_account_is_soon_on_the_timeline(
    world: World, customer: Elsewhere, foreign_run: str
) -> None:
    machine = world.store.machine(foreign_run, 1)

    fact, ordered_at = terminated(world, foreign_run, customer.client("ec2"), machine.instance_id or "")

    assert (fact.attempt, fact.message) == (1, BY_USER)
    assert fact.at - ordered_at < SOON
    assert world.ended(foreign_run)["run"]["failure"]["code"] == "machine_lost"
    until(lambda: world.status(foreign_run)["machine"]["state"] == "released")


# -- another Region ----------------------------------------------------------------------------------------


def test_what_happens_in_another_region_of_the_own_account_is_soon_on_the_timeline(world: World) -> None:
    """The record is written by hand, since the price fixtures know one Region."""
    ireland = Elsewhere(world.cloud.aws, world.cloud.aws.account_id, "eu-west-1")
    ireland.forward(world.cloud.outputs["CustomerBusArn"])
    ec2 = ireland.client("ec2")
    image = ec2.register_image(Name="gpu", Architecture="x86_64", RootDeviceName="/dev/sda1")["ImageId"]
    launch = ec2.run_instances(ImageId=image, InstanceType="t3.micro", MinCount=1, MaxCount=1)
    instance_id = launch["Instances"][0]["InstanceId"]
    run_id = _recorded(world, instance_id, region="eu-west-1")

    fact, ordered_at = terminated(world, run_id, ec2, instance_id)

    assert fact.message == BY_USER
    assert fact.at - ordered_at < SOON


def _recorded(world: World, instance_id: str, *, region: str) -> str:
    """A run whose machine is that instance, on a connection of that Region."""
    store, home = world.store, world.store.connection(world.organization_id, world.connection_id)
    settings = replace(home.settings, region=region)  # type: ignore[type-var]
    connection = replace(home, id="conn-aws-ireland", settings=settings, version=0)
    run = worlds.run(id="run-ireland", organization_id=world.organization_id)
    machine = worlds.machine(
        run_id=run.id,
        organization_id=world.organization_id,
        connection_id=connection.id,
        account_id=world.cloud.aws.account_id,
        instance_id=instance_id,
        seen=Seen.RUNNING,
    )
    store.commit(connection, run, replace(machine, parameters=replace(machine.parameters, region=region)))
    secrets = world.cloud.client("secretsmanager")
    prefix = "tensorant/tensorant/connections"
    kept = secrets.get_secret_value(SecretId=f"{prefix}/{home.id}")["SecretString"]
    secrets.create_secret(Name=f"{prefix}/{connection.id}", SecretString=kept)
    return run.id
