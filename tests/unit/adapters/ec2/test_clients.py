"""Which requests are repeated behind our back, and which are not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError

from tensorant.adapters.ec2.clients import Clients, Identity
from tensorant.adapters.ec2.compute import Ec2Compute
from tensorant.adapters.ec2.signing import signed_with_keys
from tensorant.domain.errors import Capacity
from tests.support.canned_server import CannedServer
from tests.support.worlds import ACCOUNT, machine

NO_CAPACITY = """<Response><Errors><Error><Code>InsufficientInstanceCapacity</Code>
<Message>We currently do not have sufficient g6.xlarge capacity.</Message></Error></Errors>
<RequestID>1</RequestID></Response>"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[CannedServer]:
    with CannedServer(lambda: (500, NO_CAPACITY)).serving() as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", running.url)
        yield running


class OurClients(Clients):
    """Knows whose it is without asking."""

    def identity(self) -> Identity:
        return Identity(account_id=ACCOUNT, arn=f"arn:aws:iam::{ACCOUNT}:user/x")


def test_want_of_capacity_is_asked_about_once_though_it_comes_as_a_server_error(server: CannedServer) -> None:
    compute = Ec2Compute(OurClients(signed_with_keys("x", "x", None, "us-east-1"), "us-east-1"))

    with pytest.raises(Capacity):
        compute.ask(machine(), user_data="")

    assert [each["Action"] for each in server.asked] == ["RunInstances"]


def test_a_read_is_repeated(server: CannedServer) -> None:
    """This shows that the server above would have seen a repetition."""
    clients = Clients(signed_with_keys("x", "x", None, "us-east-1"), "us-east-1")

    with pytest.raises(ClientError):
        clients.ec2.describe_subnets()

    assert [each["Action"] for each in server.asked] == ["DescribeSubnets"] * 3


def test_the_root_user_is_known_by_its_arn() -> None:
    assert Identity(account_id=ACCOUNT, arn=f"arn:aws:iam::{ACCOUNT}:root").is_root
    assert not Identity(account_id=ACCOUNT, arn=f"arn:aws:iam::{ACCOUNT}:user/root").is_root
