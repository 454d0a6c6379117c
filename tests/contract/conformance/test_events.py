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
