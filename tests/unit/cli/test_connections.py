"""Connections: their secrets come from the environment or a hidden prompt, and are never shown."""

from __future__ import annotations

import json

import pytest

from tensorant.domain.connections import AwsSettings, CheckItem, CheckVerdict
from tensorant.handlers.connection_requests import AwsConnection
from tensorant.handlers.storage_requests import RunPodConnection, S3Connection
from tests.support.command_line import (
    ORG,
    ScriptedApi,
    Terminal,
    catalog,
    connection,
    listed,
    squeezed,
)
from tests.unit.cli.test_profiles import local_mode

KEY_ID = "AKIAIOSFODNN7EXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
CREATE = f"POST {ORG}/connections"
SHOW = f"GET {ORG}/connections/conn-1"
AWS_OPTIONS = (
    *("--region", "us-east-1"),
    *("--image-id", "ami-0123456789abcdef0"),
    *("--subnet-id", "subnet-0123456789abcdef0"),
    *("--subnet-id", "subnet-0123456789abcdef1"),
    *("--security-group-id", "sg-0123456789abcdef0"),
)


@pytest.fixture
def keys(terminal: Terminal) -> None:
    terminal.environ |= {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}


@pytest.mark.usefixtures("keys")
def test_an_aws_connection_is_what_the_api_takes(terminal: Terminal, api: ScriptedApi) -> None:
    settings = AwsSettings(
        region="us-east-1",
        image_id="ami-0123456789abcdef0",
        subnet_ids=("subnet-0123456789abcdef0", "subnet-0123456789abcdef1"),
        security_group_id="sg-0123456789abcdef0",
    )
    api.answer(CREATE, connection(kind="aws", status="checking", settings=settings), status=202)
    api.answer(SHOW, connection(kind="aws", settings=settings))

    result = terminal.run("connections", "create", "aws", *AWS_OPTIONS)

    assert result.exit_code == 0
    asked = AwsConnection.model_validate(api.sent(CREATE))
    assert asked.name == "aws"
    assert asked.settings() == settings
    assert asked.credentials.secret() == {"access_key_id": KEY_ID, "secret_access_key": SECRET}
    assert SECRET not in result.output


@pytest.mark.usefixtures("keys")
def test_a_check_is_waited_for_and_shown(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(CREATE, connection(status="checking"), status=202)
    api.answer(SHOW, connection(status="checking"), connection(status="checking"), connection())

    result = terminal.run(
        *("connections", "create", "s3", "--region", "us-east-1", "--bucket", "example-adapters")
    )

    assert result.exit_code == 0
    assert terminal.slept == [1.0, 1.0]
    assert "Status connected" in squeezed(result.stdout)
    assert "write ok an object was written" in squeezed(result.stdout)
    assert S3Connection.model_validate(api.sent(CREATE)).addressing_style == "virtual"


@pytest.mark.usefixtures("keys")
def test_a_store_of_another_vendor_is_named_by_its_endpoint(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(CREATE, connection(status="checking"), status=202)
    api.answer(SHOW, connection())

    result = terminal.run(
        *("connections", "create", "s3", "--endpoint-url", "https://abc.r2.cloudflarestorage.com"),
        *("--region", "auto", "--bucket", "example-adapters"),
    )

    assert result.exit_code == 0
    sent = S3Connection.model_validate(api.sent(CREATE)).settings()
    assert (sent.endpoint_url, sent.region, sent.addressing_style) == (
        "https://abc.r2.cloudflarestorage.com",
        "auto",
        "path",
    )


@pytest.mark.usefixtures("keys")
def test_a_volume_is_connected_with_its_own_keys_and_not_with_awss(
    terminal: Terminal, api: ScriptedApi
) -> None:
    terminal.environ["RUNPOD_S3_ACCESS_KEY_ID"] = "user_2fJq0abcdefg"
    terminal.environ["RUNPOD_S3_SECRET_ACCESS_KEY"] = "rps_secret-of-this-test"
    api.answer(CREATE, connection(status="checking"), status=202)
    api.answer(SHOW, connection())

    result = terminal.run(
        *("connections", "create", "runpod-storage", "--datacenter", "EU-RO-1", "--volume-id", "a1b2c3d4e5")
    )

    assert result.exit_code == 0
    sent = RunPodConnection.model_validate(api.sent(CREATE))
    assert (sent.settings().datacenter, sent.settings().volume_id) == ("EU-RO-1", "a1b2c3d4e5")
    assert sent.credentials.secret() == {
        "access_key_id": "user_2fJq0abcdefg",
        "secret_access_key": "rps_secret-of-this-test",
    }
    assert "rps_secret-of-this-test" not in result.output


def test_keys_of_a_volume_are_asked_for_and_not_shown(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(CREATE, connection(status="checking"), status=202)
    api.answer(SHOW, connection())

    result = terminal.run(
        *("connections", "create", "runpod-storage", "--datacenter", "EU-RO-1", "--volume-id", "a1b2c3d4e5"),
        typed="user_2fJq0abcdefg\nrps_secret-of-this-test\n",
    )

    assert result.exit_code == 0
    assert api.sent(CREATE)["credentials"]["access_key_id"] == "user_2fJq0abcdefg"
    assert "rps_secret-of-this-test" not in result.output


def test_what_is_missing_of_a_volume_is_named(terminal: Terminal, api: ScriptedApi) -> None:
    result = terminal.run("connections", "create", "runpod-storage")

    assert result.exit_code == 1
    assert "Not given: --datacenter, --volume-id." in result.stderr
    assert "tensorant connections create runpod-storage --help" in result.stderr


@pytest.mark.usefixtures("keys")
def test_a_failed_check_shows_its_mend_and_fails(terminal: Terminal, api: ScriptedApi) -> None:
    failed = CheckItem(
        name="bucket",
        verdict=CheckVerdict.FAILED,
        seen="access denied",
        mend="Allow s3:PutObject on example-adapters.",
    )
    api.answer(CREATE, connection(status="checking"), status=202)
    api.answer(SHOW, connection(status="failed", checks=(failed,)))

    result = terminal.run(
        *("connections", "create", "s3", "--region", "us-east-1", "--bucket", "example-adapters")
    )

    assert result.exit_code == 1
    assert "Allow s3:PutObject on example-adapters." in result.stdout


def test_without_an_environment_keys_are_asked_for_and_not_shown(
    terminal: Terminal, api: ScriptedApi
) -> None:
    api.answer(CREATE, connection(status="checking"), status=202)

    result = terminal.run(
        *("connections", "create", "s3", "--region", "us-east-1", "--bucket", "example-adapters"),
        "--no-wait",
        typed=f"{KEY_ID}\n{SECRET}\n",
    )

    assert result.exit_code == 0
    assert api.sent(CREATE)["credentials"] == {"access_key_id": KEY_ID, "secret_access_key": SECRET}
    assert "Access key id" in result.output
    assert KEY_ID not in result.output
    assert SECRET not in result.output


def test_where_nobody_can_be_asked_the_environment_is_named(terminal: Terminal, api: ScriptedApi) -> None:
    result = terminal.run(
        *("connections", "create", "s3", "--region", "us-east-1", "--bucket", "example-adapters"), typed=""
    )

    assert result.exit_code == 1
    assert "AWS_SECRET_ACCESS_KEY" in result.stderr
    assert api.requests == []


@pytest.mark.parametrize("command", [("connections", "create", "aws"), ("connections", "create", "s3")])
def test_no_option_takes_a_secret(terminal: Terminal, command: tuple[str, ...]) -> None:
    help_text = terminal.run(*command, "--help").stdout

    assert "--secret" not in help_text
    assert "--token" not in help_text
    assert "--access-key" not in help_text
    assert "--password" not in terminal.run("login", "--help").stdout
    assert "--token" not in terminal.run("--help").stdout


@pytest.mark.usefixtures("keys")
def test_what_is_missing_is_named(terminal: Terminal, api: ScriptedApi) -> None:
    result = terminal.run("connections", "create", "aws", "--region", "us-east-1")

    assert result.exit_code == 1
    assert "Not given: --image-id, --subnet-id, --security-group-id." in result.stderr
    assert api.requests == []


@pytest.mark.usefixtures("keys")
def test_in_local_mode_nothing_needs_to_be_given_and_real_keys_stay_home(
    terminal: Terminal, api: ScriptedApi
) -> None:
    local_credentials = {"access_key_id": "LOCALLOCALLOCAL1", "secret_access_key": "local-secret"}
    local_mode(
        terminal.directory,
        organization="org-1",
        connections={
            "s3": {"region": "us-east-1", "bucket": "local-bucket", "credentials": local_credentials}
        },
    )
    for name in ("TENSORANT_URL", "TENSORANT_TOKEN", "TENSORANT_ORGANIZATION"):
        del terminal.environ[name]
    api.answer(CREATE, connection(status="checking"), status=202)
    api.answer(SHOW, connection())

    result = terminal.run("connections", "create", "s3", "--prefix", "mine/")

    assert result.exit_code == 0
    assert api.sent(CREATE) == {
        "kind": "s3",
        "name": "s3",
        "region": "us-east-1",
        "bucket": "local-bucket",
        "prefix": "mine/",
        "credentials": local_credentials,
    }
    assert "From local mode: region, bucket." in result.stderr
    assert "local-secret" not in result.output


def test_gpus_are_listed_by_price_the_unpriced_last(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(f"GET {ORG}/connections", listed(connection(), connection(id="conn-2", kind="aws")))
    api.answer(f"GET {ORG}/connections/conn-2/gpus", catalog())

    result = terminal.run("connections", "gpus")

    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["g6.xlarge", "g5.xlarge", "g6e.xlarge"]
    assert "24 GiB" in lines[1]
    assert "$0.8048/h" in lines[1]
    assert "AWS connection: conn-2 (the only one)." in result.stderr


def test_a_check_can_be_asked_for_again(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(f"POST {ORG}/connections/conn-1/check", connection(status="checking"), status=202)
    api.answer(SHOW, connection())

    result = terminal.run("connections", "check", "conn-1", "--json")

    assert result.exit_code == 0
    assert json.loads(result.stdout)["status"] == "connected"


def test_a_check_that_does_not_end_is_not_waited_for_for_ever(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(f"POST {ORG}/connections/conn-1/check", connection(status="checking"), status=202)
    api.answer(SHOW, connection(status="checking"))

    result = terminal.run("connections", "check", "conn-1")

    assert result.exit_code == 1
    assert "The check of conn-1 is not done after 180 s." in result.stderr
    assert sum(terminal.slept) == 180


def test_connections_are_listed_with_their_state(terminal: Terminal, api: ScriptedApi) -> None:
    api.answer(f"GET {ORG}/connections", listed(connection(), connection(id="conn-2", status="failed")))

    lines = terminal.run("connections", "list").stdout.splitlines()

    assert lines[1].split()[:4] == ["conn-1", "s3", "s3", "connected"]
    assert lines[2].split()[:4] == ["conn-2", "s3", "s3", "failed"]
