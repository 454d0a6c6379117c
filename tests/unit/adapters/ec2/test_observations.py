"""What DescribeInstances says of an instance: who ended it, why it never ran, and its disk."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant.adapters.ec2.observations import observation
from tensorant.adapters.ec2.state_reasons import CAUSES, LAUNCH_FAILURES
from tensorant.domain.errors import FailureClass
from tensorant.domain.machines import Cause, RootVolume

INSTANCE = "i-0123456789abcdef0"


def described(state: str, code: str = "", message: str = "", **more: Any) -> dict[str, Any]:
    told = {"StateReason": {"Code": code, "Message": message}} if code else {}
    return {"InstanceId": INSTANCE, "State": {"Name": state}, **told, **more}


# -- why it never ran --------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["terminated", "shutting-down"])
@pytest.mark.parametrize(
    ("code", "message", "failure_class"),
    [
        ("Client.InternalError", "Client.InternalError: Client error on launch", FailureClass.PERMISSION),
        (
            "Client.VolumeLimitExceeded",
            "Client.VolumeLimitExceeded: Volume limit exceeded",
            FailureClass.QUOTA,
        ),
        (
            "Client.InvalidSnapshot.NotFound",
            "Client.InvalidSnapshot.NotFound: The snapshot was not found",
            FailureClass.CONFIGURATION,
        ),
        ("Server.InternalError", "Server.InternalError: Internal error on launch", FailureClass.CAPACITY),
        (
            "Server.InsufficientInstanceCapacity",
            "Server.InsufficientInstanceCapacity: There was insufficient capacity",
            FailureClass.CAPACITY,
        ),
    ],
)
def test_a_machine_that_ec2_could_not_run_says_why(
    state: str, code: str, message: str, failure_class: FailureClass
) -> None:
    found = observation(described(state, code, message)).never_ran_because

    assert found is not None
    assert (found.failure_class, found.code) == (failure_class, code)
    assert found.message == f"EC2 could not run the machine {INSTANCE}: {message}"
    assert found.mend


def test_a_key_that_may_not_be_used_names_the_rights_that_it_takes() -> None:
    found = observation(described("terminated", "Client.InternalError", "Client error on launch"))

    assert found.never_ran_because is not None
    assert "kms:CreateGrant" in found.never_ran_because.mend


@pytest.mark.parametrize(
    ("code", "message", "counts"),
    [
        (
            "Server.InternalError",
            "Client.VolumeLimitExceeded: Volume limit exceeded",
            "Client.VolumeLimitExceeded",
        ),
        (
            "Client.VolumeLimitExceeded",
            "Server.InternalError: Internal error on launch",
            "Client.VolumeLimitExceeded",
        ),
        (
            "Client.InternalError",
            "Server.InsufficientInstanceCapacity: none",
            "Server.InsufficientInstanceCapacity",
        ),
    ],
)
def test_where_code_and_message_disagree_the_one_that_says_more_counts(
    code: str, message: str, counts: str
) -> None:
    found = observation(described("terminated", code, message))

    assert found.never_ran_because is not None
    assert found.never_ran_because.code == counts
    assert found.reason == f"{code}: {message}"


@pytest.mark.parametrize("state", ["pending", "running", "stopping", "stopped"])
@pytest.mark.parametrize("code", LAUNCH_FAILURES)
def test_a_machine_that_is_not_ending_was_not_refused(state: str, code: str) -> None:
    """A stopped one may have failed to start again: its disk is still there."""
    assert observation(described(state, code, "text")).never_ran_because is None


@pytest.mark.parametrize("code", ["Client.UserInitiatedShutdown", "Server.ScheduledStop", "Heard.Of.Nowhere"])
def test_other_reasons_are_no_launch_failure(code: str) -> None:
    assert observation(described("terminated", code, "text")).never_ran_because is None


# -- who ended it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("Client.UserInitiatedShutdown", Cause.CALL),
        ("Client.InstanceInitiatedShutdown", Cause.HOST),
        ("Server.ScheduledStop", Cause.PROVIDER),
        ("Server.SpotInstanceShutdown", Cause.PROVIDER),
        ("Server.SpotInstanceTermination", Cause.PROVIDER),
        ("Server.InternalError", Cause.PROVIDER),
        ("Server.InsufficientInstanceCapacity", Cause.PROVIDER),
        ("Client.InternalError", None),
        ("Client.VolumeLimitExceeded", None),
        ("Client.InvalidSnapshot.NotFound", None),
        ("Heard.Of.Nowhere", None),
    ],
)
def test_who_ended_a_machine_follows_from_the_reason(code: str, cause: Cause | None) -> None:
    assert observation(described("stopped", code, "text")).cause is cause


def test_the_message_alone_says_it_too() -> None:
    said = described("stopped", "Unknown", "Client.InstanceInitiatedShutdown: Instance initiated shutdown")

    assert observation(said).cause is Cause.HOST


@pytest.mark.parametrize(
    ("transition", "cause"),
    [
        ("User initiated (2026-08-01 12:00:00 GMT)", Cause.CALL),
        ("Service initiated (2026-08-01 12:00:00 GMT)", Cause.PROVIDER),
        ("", None),
    ],
)
def test_without_a_state_reason_the_transition_says_it(transition: str, cause: Cause | None) -> None:
    found = observation(described("terminated", StateTransitionReason=transition))

    assert (found.cause, found.reason) == (cause, transition)


def test_every_reason_of_the_reference_is_known() -> None:
    known = {*LAUNCH_FAILURES, *CAUSES}

    assert known >= {
        "Client.InternalError",
        "Client.VolumeLimitExceeded",
        "Client.InvalidSnapshot.NotFound",
        "Server.InternalError",
        "Server.InsufficientInstanceCapacity",
        "Server.ScheduledStop",
        "Server.SpotInstanceShutdown",
        "Server.SpotInstanceTermination",
        "Client.InstanceInitiatedShutdown",
        "Client.UserInitiatedShutdown",
    }


# -- its disk ----------------------------------------------------------------------------------------------


def mapping(device: str, volume_id: str, *, deleted: bool) -> dict[str, Any]:
    return {"DeviceName": device, "Ebs": {"VolumeId": volume_id, "DeleteOnTermination": deleted}}


@pytest.mark.parametrize("deleted", [True, False])
def test_the_root_disk_is_told_from_others(*, deleted: bool) -> None:
    said = described(
        "running",
        RootDeviceName="/dev/sda1",
        BlockDeviceMappings=[
            mapping("/dev/sdf", "vol-2", deleted=not deleted),
            mapping("/dev/sda1", "vol-1", deleted=deleted),
        ],
    )

    assert observation(said).root_volume == RootVolume(volume_id="vol-1", deleted_on_termination=deleted)


@pytest.mark.parametrize(
    "mappings", [[], [mapping("/dev/sdf", "vol-2", deleted=True)], [{"DeviceName": "/dev/sda1"}]]
)
def test_a_disk_that_is_not_attached_is_not_seen(mappings: list[dict[str, Any]]) -> None:
    said = described("pending", RootDeviceName="/dev/sda1", BlockDeviceMappings=mappings)

    assert observation(said).root_volume is None
