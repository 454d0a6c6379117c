"""The real boot scripts on machines with a fault, under the deployed state machine: each ends in its class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from tensorant.adapters.step_functions import StepFunctions
from tensorant.domain.errors import Conflict
from tensorant.services.signals import signal
from tensorant_local.machines.options import MachineOptions
from tests.support.machine_room import trainer
from tests.workflow.conftest import World, ok, until
from tests.workflow.real_hosts import RealHosts

SILENCE = timedelta(minutes=11)
"""A minute more than a machine may take until its first word."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with a machine, and what its owner reads."""

    options: MachineOptions
    failure_class: str
    code: str
    message: str
    mend: str


def healthy(behaviour: str = "completes") -> MachineOptions:
    return trainer(behaviour)


FAULTS = {
    "old driver": Fault(
        replace(healthy(), driver_version="535.183.01"),
        "configuration",
        "driver_too_old",
        "The NVIDIA driver is 535.183.01; 580 or newer is needed.",
        "Use an AMI with NVIDIA driver 580 or newer.",
    ),
    "no GPU": Fault(
        replace(healthy(), gpu_name=None),
        "bad_host",
        "gpu_missing",
        "nvidia-smi sees no GPU: No devices were found",
        "Launch again; if it stays, check the AMI with nvidia-smi on the chosen GPU.",
    ),
    "no GPU in a container": Fault(
        replace(healthy(), gpu_in_container=False),
        "bad_host",
        "gpu_in_container",
        "A container sees no GPU: docker: Error response from daemon: failed to create task for container: "
        "nvidia-container-cli: initialization error: driver error",
        "sudo docker run --rm --gpus all ubuntu:24.04 nvidia-smi",
    ),
    "full disk": Fault(
        replace(healthy(), free_disk_gib=0),
        "configuration",
        "disk_too_small",
        "0 GiB of disk are free; 20 GiB are needed.",
        "Ask for a larger workspace and launch again.",
    ),
    "no route to the registry": Fault(
        replace(healthy(), unreachable={"registry.invalid": "dns"}),
        "configuration",
        "route_registry",
        "The image registry can't be reached: its name can't be resolved (DNS: Name or service not known).",
        "pass HTTPS to the image registry",
    ),
    "no route to the storage": Fault(
        replace(healthy(), unreachable={"the storage": "timeout"}),
        "configuration",
        "route_storage",
        "The run's storage can't be reached: no answer in time: a firewall or a missing route may drop it.",
        "pass HTTPS to the storage's endpoint",
    ),
    "an image that nobody gives out": Fault(
        replace(healthy(), pull_succeeds=False),
        "configuration",
        "image_pull",
        "could not be pulled: Error response from daemon: manifest for registry.invalid/",
        "Check that the deployment's trainer image exists",
    ),
    "an image that dies at once": Fault(
        healthy("broken"),
        "configuration",
        "image_broken",
        "The trainer's container ended with status 1 before it had done anything: ModuleNotFoundError: "
        "No module named 'torch'",
        "build the deployment's trainer image anew",
    ),
}
NO_WAY_OUT = "no route to the control plane"


@dataclass(frozen=True)
class Launched:
    """One run for each fault, launched together, so that they end together."""

    world: World
    hosts: RealHosts
    runs: dict[str, str]

    def instance_id(self, fault: str) -> str:
        return self.world.hosts.of_run(self.runs[fault])


@pytest.fixture(scope="module")
def launched(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launched]:
    hosts = RealHosts(tmp_path_factory.mktemp("machines"), world.hosts)
    world.hosts.real = hosts
    places = {"the storage": world.cloud.aws.url, "the control plane": world.cloud.api_url}
    faults = {name: fault.options for name, fault in FAULTS.items()}
    faults[NO_WAY_OUT] = replace(healthy(), unreachable={"the control plane": "dns"})
    runs: dict[str, str] = {}
    try:
        for name, options in faults.items():
            runs[name] = str(ok(world.draft())["id"])
            unreachable = {
                places.get(place, place).removeprefix("http://"): way
                for place, way in options.unreachable.items()
            }
            hosts.options[runs[name]] = replace(options, unreachable=unreachable)
            ok(world.owner.post(f"{world.path}/runs/{runs[name]}/launch"))
        yield Launched(world, hosts, runs)
    finally:
        world.hosts.real = None
        hosts.close()


@pytest.mark.parametrize("name", FAULTS)
def test_a_bad_host_ends_in_its_class_inside_the_limit(launched: Launched, name: str) -> None:
    world, run_id, fault = launched.world, launched.runs[name], FAULTS[name]

    ended = world.ended(run_id)

    failure = ended["run"]["failure"]
    assert (ended["outcome"], failure["failure_class"], failure["code"]) == (
        "failed",
        fault.failure_class,
        fault.code,
    )
    assert fault.message in failure["message"]
    assert fault.mend in failure["mend"]
    assert (ended["machine"]["state"], ended["machine"]["disposition"]) == ("released", "nothing_to_keep")
    assert ended["run"]["ended_at"] < ended["run"]["deadline_at"]
    assert not launched.hosts.is_running(launched.instance_id(name))
    [told] = [
        fact["message"]
        for fact in ok(world.owner.get(f"{world.path}/runs/{run_id}/events"))["items"]
        if fact["kind"] == "preflight_failed"
    ]
    assert told == f"{fault.code}: {failure['message']}"


def test_a_host_that_never_reaches_the_control_plane_tells_its_console(launched: Launched) -> None:
    world, run_id = launched.world, launched.runs[NO_WAY_OUT]
    instance_id = launched.instance_id(NO_WAY_OUT)
    until(lambda: "Check the subnet's route out" in launched.hosts.console(instance_id))
    wait_out_the_silence(world, run_id)

    ended = world.ended(run_id)

    failure = ended["run"]["failure"]
    assert (ended["outcome"], failure["failure_class"], failure["code"]) == (
        "failed",
        "configuration",
        "never_heard",
    )
    assert "outbound route for HTTPS" in failure["mend"]
    assert (ended["machine"]["state"], ended["machine"]["disposition"]) == ("released", "nothing_to_keep")
    assert (
        f"route_control_plane: The control plane can't be reached at {world.cloud.api_url}/agent/v1: "
        "its name can't be resolved (DNS: Name or service not known)."
    ) in launched.hosts.console(instance_id)
    assert not launched.hosts.is_running(instance_id)


def wait_out_the_silence(world: World, run_id: str) -> None:
    """As if the machine had been asked for long ago; whoever is woken looks for himself."""

    def asked_long_ago() -> bool:
        machine = world.store.machine(run_id, 1)
        try:
            world.store.commit(replace(machine, asked_at=machine.asked_at - SILENCE))
        except Conflict:
            return False
        return True

    until(asked_long_ago)
    signal(run_id, store=world.store, workflow=StepFunctions(world.cloud.client("stepfunctions")))
