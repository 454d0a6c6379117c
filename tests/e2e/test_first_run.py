"""From nothing to an adapter that PEFT loads, and what happens when the trainer dies on the way."""

from __future__ import annotations

import os
import subprocess
import sys

from tensorant_local.base_models import TINY, offline_environment
from tests.e2e.conftest import Person, until

DRAFT = (
    "runs", "draft", "--base-model", TINY, "--instance-type", "g6.xlarge",
    "--price-limit-usd-per-hour", "1.50", "--time-limit-minutes", "30", "--trial",
    "--max-tokens", "512", "--learning-rate", "1e-2",
)  # fmt: skip

LOAD = """
import sys, torch
from transformers import AutoModelForCausalLM
from peft import PeftModel
base = AutoModelForCausalLM.from_pretrained(sys.argv[1])
tokens = torch.arange(3, 19).unsqueeze(0)
with torch.no_grad():
    before = base(tokens).logits
    after = PeftModel.from_pretrained(base, sys.argv[2])(tokens).logits
assert torch.isfinite(after).all()
print(float((after - before).abs().max()))
"""


def test_ten_commands_lead_to_an_adapter_that_peft_loads(person: Person) -> None:
    person.types(*DRAFT, "--name", "first", "--epochs", "2")
    review = person.types("runs", "review")
    assert "$0.8218" in review  # 0.8048 + 155 GiB x 0.08 / 730, rounded to a hundredth of a cent

    person.types("runs", "launch", "--yes")
    watched = person.types("runs", "watch")
    person.types("runs", "adapter", "--output", "adapter")

    assert "succeeded" in watched
    assert "released" in watched
    status = person.reads("runs", "show")
    assert (status["outcome"], status["machine"]["state"]) == ("succeeded", "released")
    assert status["progress"]["loss"] < status["progress"]["first_loss"]
    kinds = [fact["kind"] for fact in person.reads("runs", "events")["items"]]
    expected = ["run_drafted", "run_launched", "run_validated", "machine_asked", "booted", "preflight_passed"]
    expected += ["image_pulled", "started", "dataset", "packed", "uploaded", "completed", "run_succeeded"]
    assert [kind for kind in kinds if kind in expected] == expected
    assert kinds[-1] == "machine_released"
    assert changed_by_the_adapter(person) > 0


def changed_by_the_adapter(person: Person) -> float:
    """How far the adapter moves the base model's output, PEFT loading both."""
    models = person.deployment.models
    environment = {**os.environ, **offline_environment(models)}
    loaded = subprocess.run(
        [sys.executable, "-c", LOAD, TINY, str(person.folder / "adapter")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert loaded.returncode == 0, loaded.stderr
    return float(loaded.stdout)


def test_a_killed_trainer_keeps_the_disk_and_a_reboot_does_not_train_again(person: Person) -> None:
    person.types(*DRAFT, "--name", "killed", "--epochs", "100", "--batch-size", "1")
    person.types("runs", "launch", "--yes")
    until(lambda: person.reads("runs", "show")["phase"] == "training")
    instance_id = str(person.reads("runs", "show")["machine"]["instance_id"])
    machines = person.deployment.machines

    machines.kill_trainer(instance_id)
    watched = person.tries("runs", "watch")

    assert watched.returncode == 1
    status = person.reads("runs", "show")
    assert (status["outcome"], status["machine"]["state"]) == ("needs_recovery", "retained")
    failure = status["run"]["failure"]
    assert (failure["code"], failure["failure_class"]) == ("trainer_killed", "training")
    assert "137" in failure["message"]
    assert (machines.root(instance_id) / "var/lib/tensorant").is_dir()
    assert not machines.is_running(instance_id)

    ec2 = person.deployment.cloud.client("ec2")
    ec2.start_instances(InstanceIds=[instance_id])
    until(lambda: "Restarted for recovery" in machines.console(instance_id))

    assert machines.console(instance_id).count("Starting the trainer") == 1
    ec2.stop_instances(InstanceIds=[instance_id])
    until(lambda: not machines.is_running(instance_id))


def test_a_wrong_draft_is_told_field_and_mend(person: Person) -> None:
    two_gpus = list(DRAFT)
    two_gpus[two_gpus.index("g6.xlarge")] = "g5.12xlarge"

    refused = person.tries(*two_gpus)

    assert refused.returncode == 1
    assert "it has 4 GPUs, and a run uses exactly one" in refused.stderr
    assert "instance_types" in refused.stderr
