"""What EC2 says of an instance, and of a call that it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from tensorant.adapters.ec2.clients import Clients
from tensorant.adapters.ec2.compute import Ec2Compute
from tensorant.domain.errors import Permission, ProviderError, ProviderFault, Throttled
from tensorant.domain.machines import Call, Seen
from tests.support.worlds import AWS_SETTINGS, NOON, machine

INSTANCE = "i-0123456789abcdef0"
CALLS = {Call.STOP: "stop_instances", Call.TERMINATE: "terminate_instances"}


class FixedClients(boto3.Session):
    """Hands out the same client of a service each time, so that its answers can be written down."""

    def __init__(self) -> None:
        super().__init__(aws_access_key_id="x", aws_secret_access_key="x", region_name="us-east-1")
        self.clients: dict[str, Any] = {
            name: super(FixedClients, self).client(name) for name in ("ec2", "sts")
        }

    def client(self, service_name: str, *_: Any, **__: Any) -> Any:
        return self.clients[service_name]


@pytest.fixture
def session() -> FixedClients:
    return FixedClients()


@pytest.fixture
def answers(session: FixedClients) -> Iterator[Stubber]:
    """EC2's."""
    with Stubber(session.clients["ec2"]) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.fixture
def compute(session: FixedClients) -> Ec2Compute:
    return Ec2Compute(Clients(session, "us-east-1"))


def described(state: str, **more: Any) -> dict[str, Any]:
    instance = {"InstanceId": INSTANCE, "State": {"Name": state}, "LaunchTime": NOON, **more}
    return {"Reservations": [{"Instances": [instance]}]}


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (
            {"StateReason": {"Code": "Client.UserInitiatedShutdown", "Message": "User initiated shutdown"}},
            "Client.UserInitiatedShutdown: User initiated shutdown",
        ),
        (
            {"StateReason": {"Code": "Client.InternalError", "Message": "Client.InternalError: on launch"}},
            "Client.InternalError: on launch",
        ),
        ({"StateReason": {"Code": "pending", "Message": "pending"}}, ""),
        ({"StateReason": {}, "StateTransitionReason": "User initiated"}, "User initiated"),
        ({}, ""),
    ],
)
def test_the_reason_of_a_state_carries_its_code(
    compute: Ec2Compute, answers: Stubber, told: dict[str, Any], reason: str
) -> None:
    answers.add_response("describe_instances", described("stopped", **told))

    seen = compute.observe(machine(instance_id=INSTANCE))

    assert (seen.state, seen.instance_id, seen.started_at) == (Seen.STOPPED, INSTANCE, NOON)
    assert seen.reason == reason


@pytest.mark.parametrize("code", ["IdempotentInstanceTerminated", "IdempotentParameterMismatch"])
def test_an_ask_that_made_a_machine_before_finds_it_by_its_token(
    session: FixedClients, compute: Ec2Compute, answers: Stubber, code: str
) -> None:
    asked = machine()
    answers.add_client_error("run_instances", code)
    answers.add_response(
        "describe_instances",
        described("terminated"),
        {"Filters": [{"Name": "client-token", "Values": [asked.client_token]}]},
    )

    with Stubber(session.clients["sts"]) as account:
        account.add_response("get_caller_identity", {"Account": asked.account_id})
        seen = compute.ask(asked, user_data="")

    assert seen.state is Seen.GONE


@pytest.mark.parametrize("call", Call)
@pytest.mark.parametrize("code", ["IncorrectInstanceState", "InvalidInstanceID.NotFound"])
def test_a_machine_on_its_way_elsewhere_is_left_to_observe(
    compute: Ec2Compute, answers: Stubber, call: Call, code: str
) -> None:
    answers.add_client_error(CALLS[call], code)

    compute.make(call, machine(instance_id=INSTANCE))


@pytest.mark.parametrize("call", Call)
def test_a_call_that_is_not_permitted_says_which_tag_to_restore(
    compute: Ec2Compute, answers: Stubber, call: Call
) -> None:
    answers.add_client_error(CALLS[call], "UnauthorizedOperation", "Not authorized.", http_status_code=403)

    with pytest.raises(Permission) as caught:
        compute.make(call, machine(instance_id=INSTANCE))

    assert f"tensorant:managed=true on {INSTANCE}" in caught.value.mend


@pytest.mark.parametrize(
    ("code", "kind"), [("RequestLimitExceeded", Throttled), ("InternalError", ProviderFault)]
)
def test_a_check_that_got_no_answer_is_no_result(
    session: FixedClients, compute: Ec2Compute, answers: Stubber, code: str, kind: type[ProviderError]
) -> None:
    answers.add_client_error("describe_images", code)

    with Stubber(session.clients["sts"]) as account:
        account.add_response("get_caller_identity", {"Account": "111122223333"})
        with pytest.raises(kind):
            compute.check(AWS_SETTINGS)
