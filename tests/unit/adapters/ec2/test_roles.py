"""Sessions of a role: renewed by us before they end, always with the external id."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tensorant.adapters.ec2.roles import AssumedRoles
from tensorant.domain.errors import Credentials, Permission, ProviderFault
from tests.support.canned_server import CannedServer

ARN = "arn:aws:iam::444455556666:role/tensorant-training"


class Sts:
    """Answers AssumeRole; each session lasts `minutes`, or the answer is a refusal."""

    def __init__(self) -> None:
        self.minutes = 60
        self.refusal = ""
        self.status = 403
        self.wants_any_id = False
        """Refuses who names no external id, and lets everybody else in."""
        self.asked: list[dict[str, str]] = []

    def __call__(self) -> tuple[int, str]:
        refusal = self.refusal
        if self.wants_any_id and "ExternalId" not in self.asked[-1]:
            refusal = "AccessDenied"
        if refusal:
            error = f"<Error><Code>{refusal}</Code><Message>No.</Message></Error>"
            return self.status, f"<ErrorResponse>{error}<RequestId>1</RequestId></ErrorResponse>"
        ends = (datetime.now(tz=UTC) + timedelta(minutes=self.minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
        keys = "<AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
        session = f"<Credentials>{keys}<Expiration>{ends}</Expiration></Credentials>"
        return 200, f"<AssumeRoleResponse><AssumeRoleResult>{session}</AssumeRoleResult></AssumeRoleResponse>"


@pytest.fixture
def sts() -> Sts:
    return Sts()


@pytest.fixture
def server(sts: Sts, monkeypatch: pytest.MonkeyPatch) -> Iterator[CannedServer]:
    with CannedServer(sts).serving() as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", running.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ours")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "ours")
        yield running


def use(roles: AssumedRoles) -> None:
    """What every request does first."""
    session = roles.of("conn-aws-1", arn=ARN, external_id="made-by-us").session("eu-west-1")
    credentials = session.get_credentials()
    assert credentials is not None
    assert credentials.get_frozen_credentials().token == "t"


def test_a_session_is_assumed_when_first_used_and_then_used_again(server: CannedServer) -> None:
    roles = AssumedRoles("dep-1")
    roles.of("conn-aws-1", arn=ARN, external_id="made-by-us").session("eu-west-1")
    assert server.asked == []

    use(roles)
    use(roles)

    [asked] = server.asked
    assert (asked["Action"], asked["RoleArn"], asked["ExternalId"]) == ("AssumeRole", ARN, "made-by-us")
    assert asked["RoleSessionName"] == "dep-1-conn-aws-1"


def test_a_session_that_is_about_to_end_is_renewed(server: CannedServer, sts: Sts) -> None:
    roles = AssumedRoles("dep-1")
    sts.minutes = 5
    use(roles)

    use(roles)

    assert [asked["ExternalId"] for asked in server.asked] == ["made-by-us", "made-by-us"]


def test_a_session_outlives_trouble_with_its_renewal_while_it_lasts(server: CannedServer, sts: Sts) -> None:
    roles = AssumedRoles("dep-1")
    sts.minutes = 12
    use(roles)
    sts.refusal = "AccessDenied"

    use(roles)

    assert [asked["Action"] for asked in server.asked].count("AssumeRole") == 2


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [("AccessDenied", 403, Permission), ("ExpiredToken", 403, Credentials), ("Unheard", 500, ProviderFault)],
)
def test_a_refusal_keeps_its_class(
    server: CannedServer, sts: Sts, code: str, status: int, kind: type[Exception]
) -> None:
    sts.refusal, sts.status = code, status

    with pytest.raises(kind) as caught:
        use(AssumedRoles("dep-1"))

    assert type(caught.value) is kind


@pytest.mark.parametrize(("refusal", "is_open"), [("", True), ("AccessDenied", False)])
def test_a_role_is_tried_without_its_external_id(
    server: CannedServer, sts: Sts, refusal: str, *, is_open: bool
) -> None:
    sts.refusal = refusal

    found = (
        AssumedRoles("dep-1").of("conn-aws-1", arn=ARN, external_id="made-by-us").open_without_external_id()
    )

    assert found is is_open
    assert "ExternalId" not in server.asked[0]


def test_a_role_that_takes_any_external_id_is_as_open_as_one_that_takes_none(
    server: CannedServer, sts: Sts
) -> None:
    """A trust policy with `StringLike sts:ExternalId *`, for one: every customer of ours gets in."""
    sts.wants_any_id, sts.asked = True, server.asked

    assumed = AssumedRoles("dep-1").of("conn-aws-1", arn=ARN, external_id="made-by-us")

    assert assumed.open_without_external_id()
    assert server.asked[1]["ExternalId"] != "made-by-us"


def test_whether_a_role_is_open_is_not_guessed(server: CannedServer, sts: Sts) -> None:
    sts.refusal, sts.status = "InternalFailure", 500

    with pytest.raises(ProviderFault):
        AssumedRoles("dep-1").of("conn-aws-1", arn=ARN, external_id="made-by-us").open_without_external_id()


def test_a_deployment_without_credentials_of_its_own_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")

    with pytest.raises(Credentials) as caught:
        use(AssumedRoles("dep-1"))

    assert caught.value.code == "no_credentials"


def test_a_session_name_is_one_that_sts_takes() -> None:
    role = AssumedRoles("d" * 50).of("conn aws/1", arn=ARN, external_id="made-by-us").role

    assert role.session_name == f"{'d' * 50}-conn-aws-1"
    assert len(AssumedRoles("d" * 70).of("c", arn=ARN, external_id="x").role.session_name) == 64
