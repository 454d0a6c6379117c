"""Whose credentials are, as STS says; and which field is to blame where it does not know them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tensorant.adapters.ec2.accounts import StsAccounts
from tensorant.domain.connections import CredentialKind
from tensorant.domain.errors import Credentials, ProviderFault
from tests.support.canned_server import CannedServer
from tests.support.worlds import ACCOUNT, AWS_SETTINGS

SECRET = {"access_key_id": "ASIAEXAMPLE", "secret_access_key": "very secret", "session_token": "token"}
KNOWN = f"""<GetCallerIdentityResponse><GetCallerIdentityResult><Account>{ACCOUNT}</Account>
<Arn>arn:aws:iam::{ACCOUNT}:user/tensorant</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>"""


class Sts:
    """Answers GetCallerIdentity, or refuses with a code."""

    def __init__(self) -> None:
        self.refusal, self.status = "", 403

    def __call__(self) -> tuple[int, str]:
        if not self.refusal:
            return 200, KNOWN
        error = f"<Error><Code>{self.refusal}</Code><Message>No.</Message></Error>"
        return self.status, f"<ErrorResponse>{error}<RequestId>1</RequestId></ErrorResponse>"


@pytest.fixture
def sts() -> Sts:
    return Sts()


@pytest.fixture(autouse=True)
def server(sts: Sts, monkeypatch: pytest.MonkeyPatch) -> Iterator[CannedServer]:
    with CannedServer(sts).serving() as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", running.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ours")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "ours")
        yield running


@pytest.mark.parametrize("kind", [CredentialKind.KEYS, CredentialKind.SAME_ACCOUNT])
def test_sts_says_whose_they_are(server: CannedServer, kind: CredentialKind) -> None:
    assert StsAccounts().account_of(replace(AWS_SETTINGS, credentials=kind), SECRET) == ACCOUNT
    assert [each["Action"] for each in server.asked] == ["GetCallerIdentity"]


def test_a_role_s_account_is_in_its_arn(server: CannedServer) -> None:
    role = replace(
        AWS_SETTINGS,
        credentials=CredentialKind.ROLE,
        role_arn="arn:aws:iam::444455556666:role/tensorant-training",
    )

    assert StsAccounts().account_of(role, {}) == "444455556666"
    assert server.asked == []


@pytest.mark.parametrize(
    ("code", "field"),
    [
        ("InvalidClientTokenId", "access_key_id"),
        ("UnrecognizedClientException", "access_key_id"),
        ("SignatureDoesNotMatch", "secret_access_key"),
        ("ExpiredToken", "session_token"),
        ("ExpiredTokenException", "session_token"),
        ("AuthFailure", "access_key_id"),
    ],
)
def test_a_refusal_names_the_field(sts: Sts, code: str, field: str) -> None:
    sts.refusal = code

    with pytest.raises(Credentials) as caught:
        StsAccounts().account_of(AWS_SETTINGS, SECRET)

    assert (caught.value.code, caught.value.field) == (code, field)
    assert caught.value.mend
    assert "very secret" not in f"{caught.value.message}{caught.value.mend}"


def test_no_answer_says_nothing_of_the_credentials(sts: Sts) -> None:
    sts.refusal, sts.status = "InternalFailure", 500

    with pytest.raises(ProviderFault):
        StsAccounts().account_of(AWS_SETTINGS, SECRET)
