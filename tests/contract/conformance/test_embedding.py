"""The embedded cloud as part of a process: it leaves nothing behind, and disturbs nobody."""

from __future__ import annotations

import importlib.metadata
import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws
from moto.core.config import default_user_config

from tensorant_local.aws.images import seed_account
from tensorant_local.aws.running import Invocation
from tensorant_local.aws.server import EmbeddedAws

if TYPE_CHECKING:
    from collections.abc import Callable


def test_it_forgets_and_frees_everything() -> None:
    with EmbeddedAws():
        pass  # what the first start of all imports, stays
    threads, environment, configuration = (
        set(threading.enumerate()),
        dict(os.environ),
        dict(default_user_config),
    )

    with EmbeddedAws() as aws:
        account = seed_account(aws)
        assert aws.client("s3").list_buckets()["Buckets"][0]["Name"] == account.bucket

    assert set(threading.enumerate()) <= threads
    assert dict(os.environ) == environment
    assert dict(default_user_config) == configuration
    with EmbeddedAws() as again:
        assert again.client("s3").list_buckets()["Buckets"] == []
        assert again.client("ec2").describe_images()["Images"] == []


def test_a_stop_ends_what_runs(role_arn_in: Callable[[EmbeddedAws], str]) -> None:
    with EmbeddedAws() as aws:
        sfn = aws.client("stepfunctions")
        definition = '{"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 3600, "End": true}}}'
        machine = sfn.create_state_machine(name="m", definition=definition, roleArn=role_arn_in(aws))
        sfn.start_execution(stateMachineArn=machine["stateMachineArn"])

    assert [thread.name for thread in threading.enumerate() if thread.name in {"execution", "program"}] == []


def test_two_cannot_run_at_once() -> None:
    with EmbeddedAws(), pytest.raises(RuntimeError, match="running in this process already"):
        EmbeddedAws().start()
    with EmbeddedAws():
        pass


def test_another_moto_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _name: "5.3.0")

    with pytest.raises(RuntimeError, match=r"mends moto 5\.2\.5, but moto 5\.3\.0 is installed"):
        EmbeddedAws()


def test_functions_may_be_attached_to_a_running_cloud(role_arn_in: Callable[[EmbeddedAws], str]) -> None:
    with EmbeddedAws() as aws:
        aws.attach(invoker=lambda name, payload: Invocation(f'"{name} {len(payload)}"'.encode()))
        functions = aws.client("lambda")
        functions.create_function(
            FunctionName="late",
            Runtime="python3.13",
            Role=role_arn_in(aws),
            Handler="x.y",
            Code={"ZipFile": b"-"},
        )

        assert functions.invoke(FunctionName="late", Payload="{}")["Payload"].read() == b'"late 2"'


def test_a_schedule_keeps_time(role_arn_in: Callable[[EmbeddedAws], str]) -> None:
    seen = a_minute_passes(role_arn_in, schedules_fire=True)

    assert [event["source"] for event in seen[:2]] == ["aws.events", "aws.events"]


def test_a_schedule_may_be_kept_from_firing(role_arn_in: Callable[[EmbeddedAws], str]) -> None:
    assert a_minute_passes(role_arn_in, schedules_fire=False) == []


def a_minute_passes(role_arn_in: Callable[[EmbeddedAws], str], *, schedules_fire: bool) -> list[Any]:
    """What a function was called with by a schedule of one minute, in ten minutes of 50 ms each."""
    seen: list[Any] = []

    def listen(_name: str, payload: bytes) -> Invocation:
        seen.append(json.loads(payload))
        return Invocation(b"null")

    with EmbeddedAws(invoker=listen, time_scale=0.05 / 60, schedules_fire=schedules_fire) as aws:
        function = aws.client("lambda").create_function(
            FunctionName="clock",
            Runtime="python3.13",
            Role=role_arn_in(aws),
            Handler="x.y",
            Code={"ZipFile": b"-"},
        )
        events = aws.client("events")
        events.put_rule(Name="clock", ScheduleExpression="rate(1 minute)")
        events.put_targets(Rule="clock", Targets=[{"Id": "1", "Arn": function["FunctionArn"]}])
        give_up_at = time.monotonic() + (10 if schedules_fire else 0.5)
        while len(seen) < 2 and time.monotonic() < give_up_at:
            time.sleep(0.02)
    return seen


def test_moto_stays_as_it_came_for_others() -> None:
    with mock_aws():
        events = boto3.client(
            "events", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
        )
        answer = events.put_events(Entries=[{"Source": "aws.ec2", "DetailType": "d", "Detail": "{}"}])

    assert answer["FailedEntryCount"] == 0


@pytest.fixture
def role_arn_in() -> Callable[[EmbeddedAws], str]:
    def made(aws: EmbeddedAws) -> str:
        role: dict[str, Any] = aws.client("iam").create_role(RoleName="r", AssumeRolePolicyDocument="{}")
        return str(role["Role"]["Arn"])

    return made
