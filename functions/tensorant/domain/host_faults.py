"""What a host's own report of failure means: one table over the codes of boot/run.sh and boot/preflight.sh.

`bad_host` is a fault of this one machine, another of the same kind may do; `configuration` comes again with
every machine until a person has changed something. After either there is nothing to keep.
"""

from __future__ import annotations

from tensorant.contract import Event
from tensorant.domain.errors import FailureClass
from tensorant.domain.failures import Failure

PREPARE_IMAGE = "Prepare the AMI as the AWS guide says, check it on the chosen GPU, and launch again."

HOST_FAULTS: dict[str, tuple[FailureClass, str]] = {
    "architecture": (FailureClass.CONFIGURATION, "Choose an x86_64 GPU type and an x86_64 AMI."),
    "docker_missing": (
        FailureClass.CONFIGURATION,
        "Use an AMI with Docker Engine and NVIDIA Container Toolkit.",
    ),
    "docker_unreachable": (
        FailureClass.CONFIGURATION,
        "Use an AMI whose Docker service starts at boot: systemctl enable --now docker.",
    ),
    "nvidia_runtime": (
        FailureClass.CONFIGURATION,
        "Install NVIDIA Container Toolkit in the AMI and run: nvidia-ctk runtime configure --runtime=docker.",
    ),
    "driver_missing": (
        FailureClass.CONFIGURATION,
        "Use an AMI with a working NVIDIA driver, 580 or newer, for its own kernel.",
    ),
    "driver_too_old": (FailureClass.CONFIGURATION, "Use an AMI with NVIDIA driver 580 or newer."),
    "gpu_count": (FailureClass.CONFIGURATION, "Choose a GPU type with exactly one GPU."),
    "gpu_missing": (
        FailureClass.BAD_HOST,
        "Launch again; if it stays, check the AMI with nvidia-smi on the chosen GPU.",
    ),
    "gpu_in_container": (
        FailureClass.BAD_HOST,
        (
            "Launch again; if it stays, check the AMI on the chosen GPU: "
            "sudo docker run --rm --gpus all ubuntu:24.04 nvidia-smi."
        ),
    ),
    "disk_too_small": (FailureClass.CONFIGURATION, "Ask for a larger workspace and launch again."),
    "route_registry": (
        FailureClass.CONFIGURATION,
        (
            "Let the subnet's route, the security group and the network ACLs pass HTTPS to the image registry "
            "and its download hosts, and let the VPC resolve their names."
        ),
    ),
    "route_storage": (
        FailureClass.CONFIGURATION,
        (
            "Let the subnet's route, the security group and the network ACLs pass HTTPS to the storage's "
            "endpoint, and let the VPC resolve its name."
        ),
    ),
    "image_pull": (
        FailureClass.CONFIGURATION,
        (
            "Check that the deployment's trainer image exists, that the registry gives it to this machine, and "
            "that the security group passes HTTPS to the registry's download hosts."
        ),
    ),
    "container_start": (
        FailureClass.CONFIGURATION,
        "Check that the deployment's trainer image is the one that trainer/README.md describes.",
    ),
    "image_broken": (
        FailureClass.CONFIGURATION,
        "See the run's log for the container's last lines, and build the deployment's trainer image anew.",
    ),
    "boot_script": (FailureClass.BAD_HOST, "Launch again; if it stays, see the run's log."),
}


def host_failure(event: Event) -> Failure:
    """Why a machine whose host gave up could not train; a code of another version is the host's fault."""
    failure_class, mend = HOST_FAULTS.get(event.code or "", (FailureClass.BAD_HOST, PREPARE_IMAGE))
    return Failure(
        failure_class=failure_class,
        code=event.code or "preflight_failed",
        message=event.message or "The machine failed its preflight.",
        mend=mend,
    )
