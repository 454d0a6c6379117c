"""EventBridge as AWS documents it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from tests.contract.conformance.patience import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorant_local.aws.server import EmbeddedAws


class Bench:
    """A bus of its own, with rules toward one function."""

    def __init__(self, aws: EmbeddedAws) -> None:
        self.client = aws.client("events")
        self.bus = f"bus-{uuid4().hex[:8]}"
        self.client.create_event_bus(Name=self.bus)

    def rule(self, arn: str, *, source: str = "tensorant", state: str = "ENABLED", **target: object) -> None:
        name = f"rule-{uuid4().hex[:8]}"
        pattern = json.dumps({"source": [source]})
        self.client.put_rule(Name=name, EventBusName=self.bus, EventPattern=pattern, State=state)
        self.client.put_targets(Rule=name, EventBusName=self.bus, Targets=[{"Id": "1", "Arn": arn, **target}])

    def put(self, detail: object, *, source: str = "tensorant", **more: object) -> dict[str, Any]:
        entry = {
            "Source": source,
            "DetailType": "Run ended",
            "Detail": json.dumps(detail),
            "EventBusName": self.bus,
        }
        return dict(self.client.put_events(Entries=[entry | more]))


@pytest.fixture
def bench(aws: EmbeddedAws) -> Bench:
    return Bench(aws)


@pytest.fixture
def listener(deploy: Callable[[Any], str]) -> str:
    def listen(_event: Any) -> None:
        return None

    return deploy(listen)


def test_an_event_reaches_a_function_in_its_envelope(
    bench: Bench, aws: EmbeddedAws, listener: str, calls: Callable[[str], list[Any]]
) -> None:
    bench.rule(listener)

    answer = bench.put(
        {"run_id": "r1"}, Time=datetime(2026, 7, 20, 12, 30, 5, tzinfo=UTC), Resources=["arn:r1"]
    )

    [event] = eventually(lambda: calls(listener), bool)
    assert event == {
        "version": "0",
        "id": answer["Entries"][0]["EventId"],
        "detail-type": "Run ended",
        "source": "tensorant",
        "account": aws.account_id,
        "time": "2026-07-20T12:30:05Z",
        "region": aws.region,
        "resources": ["arn:r1"],
        "detail": {"run_id": "r1"},
    }


def test_only_matching_enabled_rules_of_the_bus_fire(
    bench: Bench, aws: EmbeddedAws, listener: str, calls: Callable[[str], list[Any]]
) -> None:
    bench.rule(listener)
    bench.rule(listener, source="another")
    bench.rule(listener, state="DISABLED")
    Bench(aws).rule(listener)

    bench.put({"n": 1})
    bench.put({"n": 2})

    eventually(lambda: calls(listener), lambda seen: len(seen) >= 2)
    assert sorted(event["detail"]["n"] for event in calls(listener)) == [1, 2]


def test_a_failing_function_is_tried_three_times(
    bench: Bench, deploy: Callable[[Any], str], calls: Callable[[str], list[Any]]
) -> None:
    def fails(_event: Any) -> None:
        raise ValueError("broken")

    arn = deploy(fails)
    bench.rule(arn)

    bench.put({})

    eventually(lambda: calls(arn), lambda seen: len(seen) == 3)


@pytest.mark.parametrize(
    ("target", "given"),
    [
        ({"Input": '{"fixed": true}'}, {"fixed": True}),
        ({"InputPath": "$.detail.tags[1]"}, "b"),
        (
            {
                "InputTransformer": {
                    "InputPathsMap": {
                        "run": "$.detail.run_id",
                        "loss": "$.detail.loss",
                        "tags": "$.detail.tags",
                    },
                    "InputTemplate": '{"run_id": <run>, "text": "run <run>: <loss>", "loss": <loss>, "tags": <tags>}',
                }
            },
            {"run_id": 'r"1', "text": 'run r"1: 0.5', "loss": 0.5, "tags": ["a", "b"]},
        ),
        (
            {
                "InputTransformer": {
                    "InputPathsMap": {"kind": "$.detail-type"},
                    "InputTemplate": '"<kind> by <aws.events.rule-name>!"',
                }
            },
            None,
        ),
    ],
)
def test_a_target_may_be_given_something_else(
    bench: Bench, listener: str, calls: Callable[[str], list[Any]], target: dict[str, Any], given: object
) -> None:
    bench.rule(listener, **target)

    bench.put({"run_id": 'r"1', "loss": 0.5, "tags": ["a", "b"]})

    [event] = eventually(lambda: calls(listener), bool)
    if given is None:
        assert event.startswith("Run ended by rule-")
        assert event.endswith("!")
    else:
        assert event == given


def test_an_event_starts_a_state_machine(bench: Bench, aws: EmbeddedAws, role_arn: str) -> None:
    sfn = aws.client("stepfunctions")
    definition = json.dumps({"StartAt": "Only", "States": {"Only": {"Type": "Pass", "End": True}}})
    machine = sfn.create_state_machine(name=f"m-{uuid4().hex[:8]}", definition=definition, roleArn=role_arn)
    arn = machine["stateMachineArn"]
    bench.rule(arn, RoleArn=role_arn)

    bench.put({"run_id": "r9"})

    executions = eventually(
        lambda: sfn.list_executions(stateMachineArn=arn, statusFilter="SUCCEEDED")["executions"], bool
    )
    described = sfn.describe_execution(executionArn=executions[0]["executionArn"])
    assert json.loads(described["input"])["detail"] == {"run_id": "r9"}


def test_nobody_speaks_for_aws(bench: Bench, listener: str, calls: Callable[[str], list[Any]]) -> None:
    bench.rule(listener, source="aws.ec2")
    bench.rule(listener)

    answer = bench.put({"forged": True}, source="aws.ec2")
    bench.put({"honest": True})

    assert answer["FailedEntryCount"] == 1
    assert answer["Entries"][0]["ErrorCode"] == "NotAuthorizedForSourceException"
    [event] = eventually(lambda: calls(listener), bool)
    assert event["detail"] == {"honest": True}


class Clockwork:
    """A schedule toward one function."""

    def __init__(self, aws: EmbeddedAws, arn: str) -> None:
        self.aws, self.client = aws, aws.client("events")
        self.name = f"clock-{uuid4().hex[:8]}"
        self.client.put_rule(Name=self.name, ScheduleExpression="rate(1 minute)")
        self.client.put_targets(Rule=self.name, Targets=[{"Id": "1", "Arn": arn}])

    def remove(self) -> None:
        self.client.remove_targets(Rule=self.name, Ids=["1"])
        self.client.delete_rule(Name=self.name)


@pytest.fixture
def clockwork(aws: EmbeddedAws, listener: str) -> Iterator[Clockwork]:
    clock = Clockwork(aws, listener)
    yield clock
    clock.remove()


def test_a_schedule_calls_its_target_and_hears_nothing_else(
    clockwork: Clockwork, aws: EmbeddedAws, listener: str, calls: Callable[[str], list[Any]]
) -> None:
    clockwork.client.put_events(Entries=[{"Source": "tensorant", "DetailType": "d", "Detail": "{}"}])
    aws.fire_schedules()

    [event] = eventually(lambda: calls(listener), bool)
    assert {name: event[name] for name in ("source", "detail-type", "resources", "detail")} == {
        "source": "aws.events",
        "detail-type": "Scheduled Event",
        "resources": [f"arn:aws:events:{aws.region}:{aws.account_id}:rule/{clockwork.name}"],
        "detail": {},
    }


def test_a_disabled_schedule_rests(
    clockwork: Clockwork, aws: EmbeddedAws, bench: Bench, listener: str, calls: Callable[[str], list[Any]]
) -> None:
    clockwork.client.disable_rule(Name=clockwork.name)
    bench.rule(listener)

    aws.fire_schedules()
    bench.put({"later": True})

    [event] = eventually(lambda: calls(listener), bool)
    assert event["detail"] == {"later": True}


# -- other accounts and Regions ----------------------------------------------------------------------------

CUSTOMER, STRANGER = "444455556666", "777788889999"


class Account:
    """Somebody else's account, by clients of its own."""

    def __init__(self, aws: EmbeddedAws, account_id: str) -> None:
        self.aws, self.id = aws, account_id
        role = f"arn:aws:iam::{account_id}:role/forwarder"
        session = aws.client("sts").assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
        self.keys = {
            "aws_access_key_id": session["AccessKeyId"],
            "aws_secret_access_key": session["SecretAccessKey"],
            "aws_session_token": session["SessionToken"],
        }

    def client(self, service: str, **options: str) -> Any:
        return self.aws.client(service, **self.keys, **options)


class CentralBus(Bench):
    """A bus that the customer's account may put EC2's events on, and whatever has the source `shop`."""

    def __init__(self, aws: EmbeddedAws) -> None:
        super().__init__(aws)
        self.arn = self.client.describe_event_bus(Name=self.bus)["Arn"]
        statement = {
            "Sid": "Customers",
            "Effect": "Allow",
            "Principal": {"AWS": [f"arn:aws:iam::{CUSTOMER}:root"]},
            "Action": "events:PutEvents",
            "Resource": self.arn,
            "Condition": {"ForAllValues:StringEquals": {"events:source": ["aws.ec2", "shop"]}},
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        self.client.put_permission(EventBusName=self.bus, Policy=policy)

    def put_from(self, account: Account, source: str) -> dict[str, Any]:
        entry = {"Source": source, "DetailType": "d", "Detail": "{}", "EventBusName": self.arn}
        return dict(account.client("events").put_events(Entries=[entry]))

    def forward(self, events: Any, account_id: str, *, with_role: bool = True) -> None:
        """A rule on the default bus of `events` that sends EC2's events here."""
        pattern = json.dumps({"source": ["aws.ec2"]})
        name = f"forward-{uuid4().hex[:8]}"
        events.put_rule(Name=name, EventPattern=pattern)
        role = {"RoleArn": f"arn:aws:iam::{account_id}:role/forwarder"} if with_role else {}
        events.put_targets(Rule=name, Targets=[{"Id": "1", "Arn": self.arn, **role}])


@pytest.fixture
def central(aws: EmbeddedAws) -> CentralBus:
    return CentralBus(aws)


def start_an_instance(ec2: Any) -> str:
    image = ec2.register_image(
        Name=f"image-{uuid4().hex[:8]}", Architecture="x86_64", RootDeviceName="/dev/sda1"
    )["ImageId"]
    run = ec2.run_instances(ImageId=image, InstanceType="t3.micro", MinCount=1, MaxCount=1)
    return str(run["Instances"][0]["InstanceId"])


def test_an_account_puts_what_the_buss_policy_allows_it(
    central: CentralBus, aws: EmbeddedAws, listener: str, calls: Callable[[str], list[Any]]
) -> None:
    central.rule(listener, source="shop")

    answer = central.put_from(Account(aws, CUSTOMER), "shop")

    [event] = eventually(lambda: calls(listener), bool)
    assert answer["FailedEntryCount"] == 0
    assert (event["account"], event["id"]) == (CUSTOMER, answer["Entries"][0]["EventId"])


@pytest.mark.parametrize(("account_id", "source"), [(CUSTOMER, "tensorant"), (STRANGER, "shop")])
def test_an_account_puts_nothing_else(
    central: CentralBus, aws: EmbeddedAws, account_id: str, source: str
) -> None:
    account = Account(aws, account_id)

    with pytest.raises(account.client("events").exceptions.ClientError, match="AccessDeniedException"):
        central.put_from(account, source)


def test_a_customer_speaks_for_aws_no_more_than_anybody(central: CentralBus, aws: EmbeddedAws) -> None:
    answer = central.put_from(Account(aws, CUSTOMER), "aws.ec2")

    assert answer["Entries"][0]["ErrorCode"] == "NotAuthorizedForSourceException"


def test_a_forwarded_event_says_whose_it_is(
    central: CentralBus, aws: EmbeddedAws, listener: str, calls: Callable[[str], list[Any]]
) -> None:
    customer = Account(aws, CUSTOMER)
    central.rule(listener, source="aws.ec2")
    central.forward(customer.client("events"), CUSTOMER)

    instance_id = start_an_instance(customer.client("ec2"))

    event = eventually(lambda: calls(listener), bool)[0]
    assert (event["account"], event["region"], event["source"]) == (CUSTOMER, aws.region, "aws.ec2")
    assert event["detail-type"] == "EC2 Instance State-change Notification"
    assert event["detail"] == {"instance-id": instance_id, "state": "pending"}
    assert event["resources"] == [f"arn:aws:ec2:{aws.region}:{CUSTOMER}:instance/{instance_id}"]


def test_a_forwarded_event_of_another_region_says_so(
    central: CentralBus, aws: EmbeddedAws, listener: str, calls: Callable[[str], list[Any]]
) -> None:
    central.rule(listener, source="aws.ec2")
    central.forward(aws.client("events", region_name="eu-west-1"), aws.account_id)

    start_an_instance(aws.client("ec2", region_name="eu-west-1"))

    event = eventually(lambda: calls(listener), bool)[0]
    assert (event["account"], event["region"]) == (aws.account_id, "eu-west-1")


@pytest.mark.parametrize(("account_id", "with_role"), [(STRANGER, True), (CUSTOMER, False)])
def test_what_may_not_be_forwarded_is_dropped(
    central: CentralBus,
    aws: EmbeddedAws,
    listener: str,
    calls: Callable[[str], list[Any]],
    account_id: str,
    *,
    with_role: bool,
) -> None:
    """An account that is not allowed, and a target without a role."""
    customer, sender = Account(aws, CUSTOMER), Account(aws, account_id)
    central.rule(listener, source="aws.ec2")
    central.rule(listener, source="shop")
    central.forward(sender.client("events", region_name="eu-west-2"), account_id, with_role=with_role)

    start_an_instance(sender.client("ec2", region_name="eu-west-2"))
    central.put_from(customer, "shop")

    eventually(lambda: calls(listener), bool)
    assert [event["source"] for event in calls(listener)] == ["shop"]


def test_an_event_that_came_from_elsewhere_goes_no_further(
    central: CentralBus, aws: EmbeddedAws, listener: str, calls: Callable[[str], list[Any]]
) -> None:
    customer, second = Account(aws, CUSTOMER), CentralBus(aws)
    second.rule(listener, source="shop")
    second.rule(listener, source="tensorant")
    central.client.put_rule(
        Name="on", EventBusName=central.bus, EventPattern=json.dumps({"source": ["shop"]})
    )
    central.client.put_targets(Rule="on", EventBusName=central.bus, Targets=[{"Id": "1", "Arn": second.arn}])

    central.put_from(customer, "shop")
    central.put({}, source="shop")
    second.put({})

    eventually(lambda: calls(listener), lambda seen: len(seen) >= 2)
    assert {(event["source"], event["account"]) for event in calls(listener)} == {
        ("shop", aws.account_id),
        ("tensorant", aws.account_id),
    }
